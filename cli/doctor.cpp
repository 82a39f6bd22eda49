#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>

#include "cli/config_argument.h"
#include "cli/doctor_output.h"
#include "cli/flag_checks.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "cli/roll_call.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/base/exit_status.h"
#include "strait/base/files.h"
#include "strait/doctor/examine.h"
#include "strait/doctor/link_file.h"
#include "strait/doctor/rank_facts.h"

namespace strait::cli {
namespace {

struct DoctorFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::string folder;
  std::string out;
  double seconds = 1;
  bool ranks = false;
  bool json = false;
};

int status_of(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, &Finding::stops_the_run) ? kFailed : kDone;
}

/// Prints everything at the end; links that were measured stand there already.
int report_diagnosis(const Diagnosis& diagnosis, bool json) {
  const auto findings = findings_of(diagnosis);
  print(json ? diagnosis_json(diagnosis, findings) : ranks_text(diagnosis) + findings_text(findings));
  return status_of(findings);
}

/// What can be said of this machine without others, which is as if one process ran all stages.
int examine_machine(const DoctorFlags& flags, const Config& config, const Membership& membership) {
  std::vector<int> stages(config.model.cuts.size() + 1);
  std::iota(stages.begin(), stages.end(), 0);
  Diagnosis diagnosis{.name = config.name};
  diagnosis.ranks.push_back(facts_of_process(config, 0, stages, flags.folder, membership.local_size));
  return report_diagnosis(diagnosis, flags.json);
}

/// Prints a link as soon as it is measured.
void show_link(const Diagnosis& so_far, const PairReport& pair, bool& has_heading) {
  print((has_heading ? "" : links_heading()) + link_row(so_far, pair));
  flush_output();
  has_heading = true;
}

int examine_ranks(const DoctorFlags& flags, const Config& config, const Membership& membership) {
  const bool is_first = membership.rank == 0;
  const auto group = join_examination(config, membership, flags.seconds, RollCall(membership.rank));
  run_collectively(*group, [&] {
    if (is_first && !flags.out.empty()) check_output_file("--out", flags.out);
  });
  const RankFacts mine =
      facts_of_process(config, membership.rank, stages_of_rank(config, membership.rank, membership.size),
                       flags.folder, membership.local_size);
  bool has_heading = false;
  const Diagnosis diagnosis =
      examine(*group, config, mine, flags.seconds, [&](const Diagnosis& so_far, const PairReport& pair) {
        if (is_first && !flags.json) show_link(so_far, pair, has_heading);
      });
  int status = kDone;
  run_collectively(*group, [&] {
    if (!is_first) return;
    if (!flags.out.empty()) replace_file(flags.out, diagnosis_json(diagnosis, findings_of(diagnosis)));
    status = report_diagnosis(diagnosis, flags.json);
    flush_output();
  });
  status = group->gather(std::to_string(status)).front() == std::to_string(kDone) ? kDone : kFailed;
  if (!is_first && !flags.json)
    print(fmt::format("rank {} is done; rank 0 says what was found\n", membership.rank));
  return status;
}

int run_doctor(DoctorFlags flags) {
  const Config config = load_config(config_file(flags.config), flags.overrides);
  if (flags.folder.empty()) flags.folder = "runs/" + config.name;
  const auto membership = membership_of_process();
  if (!flags.out.empty()) check_not_input("--out", flags.out, config_file(flags.config));
  if (!flags.ranks) return examine_machine(flags, config, membership.value_or(Membership{}));
  if (!membership || membership->size == 1) {
    throw InputError(
        "doctor: --ranks: expected several processes; start it for every rank as train is started, or on one "
        "machine with strait launch -n N -- doctor CONFIG.toml --ranks");
  }
  return examine_ranks(flags, config, *membership);
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto* doctor = app.add_subcommand(
      "doctor", "Look, before a run, at whether it can work: machines, versions, and the links between ranks");
  auto flags = std::make_shared<DoctorFlags>();
  add_config_argument(*doctor, flags->config)->required();
  doctor->add_option("--set", flags->overrides, "Change a key, for example data.root=/data (may be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  auto* ranks =
      doctor->add_flag("--ranks", flags->ranks,
                       "Meet the other ranks, and measure the links between them; without it this machine "
                       "alone is looked at");
  doctor
      ->add_option("--seconds", flags->seconds,
                   "How long each way of a link is measured; longer is better for links of a long latency")
      ->check(number_from_to(0.05, 60))
      ->capture_default_str()
      ->type_name("S")
      ->needs(ranks);
  doctor
      ->add_option("--out", flags->out,
                   "Write all as JSON, on the machine of rank 0; `strait plan --links` reads it")
      ->check(not_empty())
      ->type_name("FILE")
      ->needs(ranks);
  doctor->add_option("--folder", flags->folder, "Folder of the run, for its disk (default: runs/NAME)")
      ->check(not_empty())
      ->type_name("DIR");
  doctor->add_flag("--json", flags->json, "Print one JSON object");
  doctor->footer(
      "\nWith --ranks it is started once for every rank, with the same variables and flags as strait train; "
      "see\n"
      "docs/distributed.md. Rank 0 prints. The exit status is 0 where nothing keeps the run from working, else "
      "1.");
  doctor->callback([&action, flags] { action = [flags] { return run_doctor(*flags); }; });
}

}  // namespace strait::cli
