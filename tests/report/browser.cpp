#include "tests/report/browser.h"

#include <regex>

#include "strait/base/text.h"
#include "tests/support/process.h"

namespace strait::report {

std::string Browser::open(const std::string& page) {
  test::write_file(dir_ / "page.html", page);
  const auto result = test::run_process(
      STRAIT_BROWSER,
      {"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
       "--disable-background-networking", "--disable-component-update", "--disable-sync",
       "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + (dir_ / "profile").string(),
       "--log-net-log=" + (dir_ / "net.json").string(), "--window-size=1280,800", "--virtual-time-budget=5000",
       "--dump-dom", "file://" + (dir_ / "page.html").string()});
  EXPECT_EQ(result.status, 0) << result.err;
  return result.out;
}

std::vector<std::string> Browser::requests() {
  std::vector<std::string> found;
  const std::regex address("\"url\":\"([^\"]*)\"");
  for (const auto& line : split(test::read_file(dir_ / "net.json"), '\n')) {
    std::smatch url;
    const bool is_request = line.find("\"initiator\":\"") != std::string::npos;
    const bool is_own = line.find("\"initiator\":\"not an origin\"") != std::string::npos;
    if (is_request && !is_own && std::regex_search(line, url, address)) found.push_back(url[1]);
  }
  return found;
}

std::string Browser::sample() {
  test::write_sample_sweep(dir_ / "sweep");
  const std::vector<std::filesystem::path> folders = {dir_ / "sweep"};
  return to_html(read_tables(folders));
}

bool has(const std::string& dom, const std::string& part) { return dom.find(part) != std::string::npos; }

std::vector<int> drawn(const std::string& dom) {
  std::vector<int> counts;
  const std::regex canvas("<canvas [^>]*>");
  for (std::sregex_iterator at(dom.begin(), dom.end(), canvas), end; at != end; ++at) {
    std::smatch count;
    const std::string tag = at->str();
    counts.push_back(std::regex_search(tag, count, std::regex("data-drawn=\"([0-9]+)\"")) ? std::stoi(count[1])
                                                                                          : 0);
  }
  return counts;
}

std::string driven(std::string page, const std::string& script) {
  const std::string policy = "script-src ";
  page.insert(page.find(policy) + policy.size(), "'nonce-test' ");
  return page.insert(page.rfind("</body>"), "<script nonce=\"test\">" + script + "</script>");
}

Run scored_run(uint64_t seed, double off, double on, double wire) {
  Run run;
  run.seed = seed;
  run.status = Status::done;
  Epoch epoch;
  epoch.steps = 2;
  epoch.off = {{"accuracy", off}};
  epoch.on = {{"accuracy", on}};
  epoch.boundaries = {{"layer1", {1e6, wire, {}}, {}}};
  run.epochs = {epoch};
  return run;
}

}  // namespace strait::report
