#include "strait/transport/group_part.h"

#include <utility>

namespace strait {
namespace {

class GroupPart : public Group {
 public:
  GroupPart(std::shared_ptr<Group> group, const RankTopology& place)
      : group_(std::move(group)), place_(place) {}

  int rank() const override { return place_.rank % place_.pipeline_ranks(); }
  int size() const override { return place_.pipeline_ranks(); }

  std::vector<std::string> gather(const std::string& mine) override {
    const auto all = group_->gather(mine);
    const auto begin = all.begin() + whole(0);
    return {begin, begin + size()};
  }

  void send(const at::Tensor& tensor, int to, const std::string& what) override {
    group_->send(tensor, whole(to), what);
  }
  void receive(at::Tensor& tensor, int from, const std::string& what) override {
    group_->receive(tensor, whole(from), what);
  }

  std::unique_ptr<Transport> make_transport(std::vector<int> peers, std::vector<std::string> names) override {
    for (int& peer : peers) peer = peer < 0 ? peer : whole(peer);
    return group_->make_transport(std::move(peers), std::move(names));
  }

  std::unique_ptr<ControlChannel> make_control(std::vector<int> peers, const std::string& what,
                                               ControlHandler handle) override {
    for (int& peer : peers) peer = whole(peer);
    return group_->make_control(std::move(peers), what, std::move(handle));
  }

  void fail(const Failure& failure) override { group_->fail(failure); }

 private:
  /// The rank in the whole group.
  int whole(int rank) const { return place_.rank - this->rank() + rank; }

  std::shared_ptr<Group> group_;
  RankTopology place_;
};

}  // namespace

std::shared_ptr<Group> pipeline_of(std::shared_ptr<Group> group, const RankTopology& place) {
  if (place.replicas == 1) return group;
  if (place.pipeline_ranks() == 1) return std::make_shared<SingleProcessGroup>();
  return std::make_shared<GroupPart>(std::move(group), place);
}

}  // namespace strait
