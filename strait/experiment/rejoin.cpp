#include "strait/experiment/rejoin.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "strait/base/units.h"
#include "strait/experiment/handshake.h"
#include "strait/transport/handshake.h"

namespace strait {
namespace {

using std::chrono::steady_clock;

constexpr auto kBetweenJoins = std::chrono::milliseconds(500);
constexpr const char* kResumes = "resumes";

/// Who was there before a process was lost resumes, and so do all.
Start agree_on_start(Group& group, Start start) {
  const auto said = group.gather(start == Start::resume ? kResumes : "");
  return std::ranges::find(said, kResumes) == said.end() ? start : Start::resume;
}

}  // namespace

RunOutcome train_with_others(const Config& config, const Membership& membership, const std::string& flags,
                             Start start, const WaitingFor& waiting,
                             const std::function<void(const std::string&)>& note, const TrainTogether& train) {
  const auto patience = std::chrono::ceil<steady_clock::duration>(
      std::chrono::duration<double>(parse_seconds(config.pipeline.rejoin, "pipeline.rejoin")));
  const auto begun = [&start] { start = Start::resume; };
  if (patience.count() == 0) return train(join_training(config, membership, flags, waiting), start, begun);
  auto end = steady_clock::now() + patience;
  bool has_trained = false;
  bool waits = false;
  const auto wait_or_throw = [&](const std::exception& error) {
    if (steady_clock::now() >= end) throw;
    if (!waits)
      note(fmt::format("{}; meeting the others again, for up to {}", error.what(), config.pipeline.rejoin));
    waits = true;
  };
  while (true) {
    bool trains = false;
    try {
      const auto group = join_training(config, membership, flags, waiting);
      has_trained = trains = true;
      waits = false;
      return train(group, agree_on_start(*group, start), begun);
    } catch (const NumericError&) {
      throw;
    } catch (const StoppedWaiting&) {
      throw;
    } catch (const RankTaken& error) {
      if (has_trained) {
        wait_or_throw(error);
      } else if (!std::exchange(waits, true)) {  // a spare, which waits for the day on which it is needed
        note(fmt::format("{}; waiting until it is free", error.what()));
      }
      waiting({membership.rank});
      std::this_thread::sleep_for(kBetweenJoins);
    } catch (const Error& error) {
      const bool is_of_peers = dynamic_cast<const PeerError*>(&error) != nullptr;
      const auto* other = dynamic_cast<const RankGaveUp*>(&error);
      if (other != nullptr && other->is_wrong_input) throw;
      // Those who have trained together can meet again, whoever is in the lost one's place meanwhile: a process
      // with other settings or another secret, or a stranger.
      if (!is_of_peers && (trains || !has_trained)) throw;
      if (trains) end = steady_clock::now() + patience;
      wait_or_throw(error);
      if (!trains) std::this_thread::sleep_for(kBetweenJoins);
    }
  }
}

}  // namespace strait
