#include "strait/transport/emulated_group.h"

#include <stop_token>
#include <utility>

#include "strait/transport/emulated_link.h"

namespace strait {
namespace {

class EmulatedGroup : public Group {
 public:
  EmulatedGroup(std::shared_ptr<Group> group, const LinkRate& link)
      : group_(std::move(group)), wire_(std::make_shared<EmulatedWire>(link)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  std::vector<std::string> gather(const std::string& mine) override { return group_->gather(mine); }

  void send(const at::Tensor& tensor, int to, const std::string& what) override {
    group_->send(tensor, to, what);
  }
  void receive(at::Tensor& tensor, int from, const std::string& what) override {
    group_->receive(tensor, from, what);
  }

  std::unique_ptr<Transport> make_transport(std::vector<int> peers, std::vector<std::string> names) override {
    return std::make_unique<EmulatedLink>(group_->make_transport(std::move(peers), std::move(names)), wire_,
                                          end_.get_token());
  }

  std::unique_ptr<ControlChannel> make_control(std::vector<int> peers, const std::string& what,
                                               ControlHandler handle) override {
    return group_->make_control(std::move(peers), what, std::move(handle));
  }

  std::vector<LinkStatus> links() const override { return group_->links(); }

  void fail(const Failure& failure) override {
    end_.request_stop();
    group_->fail(failure);
  }

 private:
  std::shared_ptr<Group> group_;
  std::shared_ptr<EmulatedWire> wire_;
  std::stop_source end_;
};

}  // namespace

std::shared_ptr<Group> over_link(std::shared_ptr<Group> group, const LinkRate& link) {
  return std::make_shared<EmulatedGroup>(std::move(group), link);
}

}  // namespace strait
