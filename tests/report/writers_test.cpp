#include "strait/report/writers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "strait/report/text_table.h"

namespace strait::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "</script><b>|\"'&`,\n";

Run run(uint64_t seed, double off, double on) {
  Run result;
  result.name = "v";
  result.seed = seed;
  result.status = Status::done;
  result.config = "name = \"v\"\n";
  result.updated = 1.8e9 + 86400 * static_cast<double>(seed);  // 2027-01-15, 08:00 UTC
  result.code_version = "0.1.0+abc";
  result.machine = "CPU";
  Epoch epoch;
  epoch.steps = 2;
  epoch.seconds = 1234.5;
  epoch.train_loss = 0.5;
  epoch.off = {{"accuracy", off}};
  epoch.on = {{"accuracy", on}};
  epoch.boundaries = {{"layer1", {4000000, 500000, {}}, {4000000, 1000000, {{"zeros", 0.25}}}}};
  result.epochs = {epoch};
  return result;
}

std::vector<Table> two_variants() {
  return {{"t",
           "A table",
           {{"one", {93.1, 92.95}, {run(0, 50, 60)}}, {"two", {}, {run(0, 50, 60), run(1, 54, 62)}}}}};
}

TEST(TextTable, SaysOneSeedRatherThanAnErrorOfZero) {
  const TextTable table = result_table(two_variants()[0]);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(table.rows[0], ElementsAre("one", "50.00", "60.00", "50.00 (n = 1)", "60.00 (n = 1)", "93.10",
                                         "92.95", "8.0×", "4.0×", "750,000", "1,234", "1", "done"));
  EXPECT_THAT(table.rows[1], ElementsAre("two", "54.00", "62.00", "52.00 ± 2.00", "61.00 ± 1.00", "–", "–",
                                         "8.0×", "4.0×", "750,000", "1,234", "2", "done"));
}

TEST(TextTable, KeepsTheNumbersBesideTheTexts) {
  const TextTable table = result_table(two_variants()[0]);
  EXPECT_THAT(table.numbers[1], ElementsAre(std::nullopt, 54, 62, 52, 61, std::nullopt, std::nullopt, 8, 4,
                                            750000, 1234.5, 2, std::nullopt));
  EXPECT_EQ(table.columns[3].measure, "score off");
  EXPECT_EQ(table.columns[4].measure, "score on");
  EXPECT_EQ(table.columns[1].measure, "") << "the best is no mean";
  EXPECT_THAT(traffic_table(two_variants()[0]).numbers.at(0),
              ElementsAre(std::nullopt, std::nullopt, 2e6, 250000, 8, 2e6, 500000, 4));
}

TEST(TextTable, OfTextHasPerplexityAndLoss) {
  Table table = two_variants()[0];
  table.variants.resize(1);
  table.variants[0].published = {21.01, 2990.16};
  Epoch& epoch = table.variants[0].runs[0].epochs[0];
  epoch.off = {{"accuracy", 40}, {"loss", 3}, {"perplexity", 20.0855}};
  epoch.on = {{"accuracy", 1}, {"loss", 50}, {"perplexity", 5.18e21}};
  const TextTable text = result_table(table);
  EXPECT_EQ(text.columns[1].group, "Best perplexity");
  EXPECT_EQ(text.columns[5].group, "Loss, last epoch, mean ± s.e.");
  EXPECT_EQ(text.columns.size(), text.rows[0].size());
  EXPECT_THAT(text.rows[0], ElementsAre("one", "20.09", "5.18e+21", "20.09 (n = 1)", "5.18e+21 (n = 1)",
                                        "3.00 (n = 1)", "50.00 (n = 1)", "21.01", "2,990.16", "8.0×", "4.0×",
                                        "750,000", "1,234", "1", "done"));
}

/// The first variant scored with feedback as well, and on is what `named` says.
std::vector<Table> with_feedback(const std::string& named) {
  auto tables = two_variants();
  Epoch& epoch = tables[0].variants[0].runs[0].epochs[0];
  epoch.evaluation = named;
  epoch.plain = {{"accuracy", 60}};
  epoch.frozen = {{"accuracy", 70}};
  epoch.live = {{"accuracy", 80}};
  epoch.on = named == "live" ? epoch.live : epoch.plain;
  return tables;
}

std::vector<std::string> labels_of(const TextTable& table, const std::string& group) {
  std::vector<std::string> labels;
  for (const auto& column : table.columns) {
    if (column.group.starts_with(group)) labels.push_back(column.label);
  }
  return labels;
}

TEST(TextTable, SaysWhatOnIs) {
  EXPECT_THAT(labels_of(result_table(two_variants()[0]), "Best"), ElementsAre("off", "on (plain)"));
  const TextTable plain = result_table(with_feedback("plain")[0]);
  for (const char* group : {"Best", "Last epoch"}) {
    EXPECT_THAT(labels_of(plain, group), ElementsAre("off", "on (plain)", "frozen", "live"));
  }
  EXPECT_EQ(plain.columns.size(), plain.rows[0].size());
  EXPECT_THAT(std::vector(plain.rows[0].begin() + 1, plain.rows[0].begin() + 9),
              ElementsAre("50.00", "60.00", "70.00", "80.00", "50.00 (n = 1)", "60.00 (n = 1)", "70.00 (n = 1)",
                          "80.00 (n = 1)"));
  EXPECT_EQ(plain.rows[1][3], "–") << "without feedback";

  auto live = with_feedback("live");
  live[0].variants.resize(1);
  EXPECT_THAT(labels_of(result_table(live[0]), "Best"), ElementsAre("off", "on (live)", "plain", "frozen"));
  const auto mixed = with_feedback("live");
  EXPECT_THAT(labels_of(result_table(mixed[0]), "Best"),
              ElementsAre("off", "on (live or plain)", "plain", "frozen", "live"));
  EXPECT_THAT(to_markdown(mixed), HasSubstr("| Best accuracy, %: on (live or plain) |"));
  EXPECT_THAT(to_html(live), testing::AllOf(HasSubstr(">on (live)</th>"), HasSubstr("compression on (live)<")));
  EXPECT_THAT(
      results_csv(mixed),
      testing::AllOf(HasSubstr(",seeds_counted,done,diverged,failed,running,stopped,waiting,on_is,best_plain,"
                               "last_plain_mean,last_plain_standard_error,best_frozen,"),
                     HasSubstr(",live,60,60,,70,70,,80,80,\r\n"), HasSubstr(",plain,,,,,,,,,\r\n")));
}

TEST(TextTable, HasPublishedFiguresWhereThereAreAny) {
  Table table = two_variants()[0];
  table.variants[0].published = {};
  const TextTable text = result_table(table);
  for (const auto& column : text.columns) EXPECT_THAT(column.group, Not(HasSubstr("Paper")));
  EXPECT_EQ(text.columns.size(), text.rows[0].size());
  EXPECT_EQ(text.rows[0][5], "8.0×");
  table.variants[1].published.on = 92.0;
  EXPECT_EQ(result_table(table).columns[5].group, "Paper, %");
}

TEST(Title, OfManyTablesStaysShort) {
  auto tables = two_variants();
  EXPECT_EQ(title_of(tables), "A table");
  tables.push_back(tables[0]);
  tables.back().title = "Another";
  EXPECT_EQ(title_of(tables), "A table and Another");
  tables.push_back(tables[0]);
  EXPECT_EQ(title_of(tables), "A table and 2 more tables");
}

TEST(Title, IsWhatIsAskedFor) {
  const auto tables = two_variants();
  EXPECT_THAT(to_html(tables), testing::AllOf(HasSubstr("<title>A table – strait report</title>"),
                                              HasSubstr("<h1>A table</h1>")));
  EXPECT_THAT(
      to_html(tables, {.title = "R&D"}),
      testing::AllOf(HasSubstr("<title>R&amp;D – strait report</title>"), HasSubstr("<h1>R&amp;D</h1>")));
  EXPECT_THAT(to_markdown(tables, "a*b"), testing::StartsWith("# a\\*b\n"));
}

TEST(TextTable, CountsEveryRun) {
  Table table = two_variants()[0];
  table.variants[1].runs[1].status = Status::diverged;
  const auto rows = result_table(table).rows;
  EXPECT_EQ(rows[1][11], "1 of 2");
  EXPECT_EQ(rows[1][12], "1 of 2 done, 1 diverged");
  table.variants[1].runs[0].status = Status::diverged;
  EXPECT_EQ(result_table(table).rows[1][12], "diverged");
  EXPECT_EQ(result_table(table).rows[1][3], "–");
}

TEST(TextTable, ASeedCountsWhoseScoreIsNotFinite) {
  Table table = two_variants()[0];
  Epoch& epoch = table.variants[1].runs[1].epochs[0];
  for (auto& run : table.variants[1].runs) run.epochs[0].off = run.epochs[0].on = {{"perplexity", 8}};
  epoch.on = {{"loss", 900}};  // its perplexity is beyond all numbers
  const auto row = result_table(table).rows[1];
  EXPECT_THAT(std::vector(row.begin() + 3, row.begin() + 5), ElementsAre("8.00 ± 0.00", "–"));
  EXPECT_THAT(std::vector(row.end() - 2, row.end()), ElementsAre("2", "done"));
  EXPECT_THAT(results_csv({table}), HasSubstr("\r\nt,two,perplexity,8,8,8,0,,,,,8,4,750000,1234.5,2,2,"));
}

TEST(TextTable, HasTheBytesOfEachBoundary) {
  EXPECT_THAT(traffic_table(two_variants()[0]).rows.at(1),
              ElementsAre("two", "layer1", "2,000,000", "250,000", "8.0×", "2,000,000", "500,000", "4.0×"));
}

TEST(Origins, NameEachOnceAndTheDays) {
  const Origins origins = origins_of(two_variants());
  EXPECT_EQ(origins.days, "2027-01-15 to 2027-01-16");
  EXPECT_THAT(origins.code_versions, ElementsAre("0.1.0+abc"));
  EXPECT_THAT(origins.machines, ElementsAre("CPU"));
  EXPECT_EQ(origins_of({}).days, "");
}

TEST(Markdown, HoldsTheTables) {
  const std::string text = to_markdown(two_variants());
  EXPECT_THAT(text, testing::StartsWith("# A table\n"));
  EXPECT_THAT(text, HasSubstr("\n- Code: 0.1.0+abc\n"));
  EXPECT_THAT(text, HasSubstr("\n| one | 50.00 | 60.00 | 50.00 (n = 1) |"));
  EXPECT_THAT(text, HasSubstr("\n| two | layer1 | 2,000,000 | 250,000 | 8.0× |"));
}

TEST(Markdown, NamesStayInTheirCells) {
  auto tables = two_variants();
  tables[0].variants[0].name = kHostile;
  EXPECT_THAT(to_markdown(tables), HasSubstr("\n| \\</script\\>\\<b\\>\\|\"'\\&\\`,  | 50.00 |"));
}

TEST(Markdown, ATitleIsNoMathematicsAndIsNotStruckOut) {
  EXPECT_THAT(to_markdown(two_variants(), "~~$a$~~"), testing::StartsWith("# \\~\\~\\$a\\$\\~\\~\n"));
}

TEST(Latex, HoldsTheTableOfResults) {
  EXPECT_THAT(
      to_latex(two_variants()),
      testing::EndsWith("\n\\begin{table}\n\\centering\n\\caption{A table}\n"
                        "\\begin{tabular}{lrrrrrrrrrrrl}\n\\toprule\n"
                        " & \\multicolumn{2}{c}{Best accuracy, \\%} & "
                        "\\multicolumn{2}{c}{Last epoch, mean $\\pm$ s.e., \\%} & "
                        "\\multicolumn{2}{c}{Paper, \\%} & \\multicolumn{2}{c}{Ratio} &  &  &  &  \\\\\n"
                        "\\cmidrule(lr){2-3}\\cmidrule(lr){4-5}\\cmidrule(lr){6-7}\\cmidrule(lr){8-9}\n"
                        "Variant & off & on (plain) & off & on (plain) & off & on & activ. & grad. & "
                        "Wire bytes per step & Seconds & Seeds & Status \\\\\n\\midrule\n"
                        "one & $50.0$ & $60.0$ & $50.0$ ($n = 1$) & $60.0$ ($n = 1$) & $93.1$ & $93.0$ & "
                        "$8.0\\times$ & $4.0\\times$ & $750{,}000$ & $1{,}234$ & $1$ & done \\\\\n"
                        "two & $54.0$ & $62.0$ & $52.0 \\pm 2.0$ & $61.0 \\pm 1.0$ & -- & -- & "
                        "$8.0\\times$ & $4.0\\times$ & $750{,}000$ & $1{,}234$ & $2$ & done \\\\\n"
                        "\\bottomrule\n\\end{tabular}\n\\end{table}\n"));
}

TEST(Latex, NamesAreNoCommands) {
  auto tables = two_variants();
  tables[0].title = "50% of $x_1$ & #2";
  tables[0].variants[0].name = "\\input{~a^b|<c>\"}\n\x1b";
  const std::string text = to_latex(tables);
  EXPECT_THAT(text, HasSubstr("\\caption{50\\% of \\$x\\_1\\$ \\& \\#2}\n"));
  EXPECT_THAT(text,
              HasSubstr("\n\\textbackslash{}input\\{\\textasciitilde{}a\\textasciicircum{}b\\textbar{}"
                        "\\textless{}c\\textgreater{}\\textquotedbl{}\\} \\textbackslash{}u001b & $50.0$"));
}

TEST(Latex, NoCharactersOfANameMakeAnother) {
  auto tables = two_variants();
  tables[0].title = "a -- b, ,,c'' ?`d-e";
  tables[0].variants[0].name = "[2ex]x---y";
  tables[0].variants[1].name = "*";
  const std::string text = to_latex(tables);
  EXPECT_THAT(text, HasSubstr("\\caption{a -{}- b, ,{},c'{}' ?{}`d-e}\n"));
  EXPECT_THAT(text, HasSubstr("\n{}[2ex]x-{}-{}-y & $50.0$")) << "no argument of the end of the row before";
  EXPECT_THAT(text, HasSubstr("\n{}* & $54.0$"));
  EXPECT_THAT(text, HasSubstr(" & -- & ")) << "of a number that is missing";
}

TEST(Latex, OfTextHasTwoDecimalsAndPowersOfTen) {
  auto tables = two_variants();
  tables[0].variants.resize(1);
  Epoch& epoch = tables[0].variants[0].runs[0].epochs[0];
  epoch.off = {{"loss", 3}, {"perplexity", 20.0855}};
  epoch.on = {{"loss", 50}, {"perplexity", 5.18e21}};
  tables[0].variants[0].runs.emplace_back().status = Status::diverged;
  EXPECT_THAT(to_latex(tables),
              HasSubstr("\none & $20.09$ & $5.18 \\cdot 10^{21}$ & $20.09$ ($n = 1$) & $5.18 \\cdot 10^{21}$ "
                        "($n = 1$) & $3.00$ ($n = 1$) & $50.00$ ($n = 1$) & $93.10$ & $92.95$ & "));
  EXPECT_THAT(to_latex(tables), HasSubstr(" & 1 of 2 & 1 of 2 done, 1 diverged \\\\\n"));
}

TEST(Csv, HoldsTheNumbersAsTheyAre) {
  const std::string text = results_csv(two_variants());
  EXPECT_THAT(text, testing::StartsWith("table,variant,metric,best_off,"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "\r\nt,one,accuracy,50,60,50,,60,,93.1,92.95,8,4,750000,1234.5,1,1,1,0,0,0,0,0,plain,,,,,,,,,\r\n"));
  EXPECT_THAT(
      text,
      HasSubstr("\r\nt,two,accuracy,54,62,52,2,61,1,,,8,4,750000,1234.5,2,2,2,0,0,0,0,0,plain,,,,,,,,,\r\n"));
  EXPECT_THAT(bytes_csv(two_variants()), HasSubstr("\r\nt,two,layer1,gradients,2000000,500000\r\n"));
}

TEST(Csv, QuotesWhatNeedsIt) {
  auto tables = two_variants();
  tables[0].variants[0].name = "a,\"b\"\n";
  EXPECT_THAT(results_csv(tables), HasSubstr("\r\nt,\"a,\"\"b\"\"\n\",accuracy,"));
}

TEST(Csv, ANameIsNoFormulaAndANumberStaysOne) {
  auto tables = two_variants();
  for (const std::string name : {"=1+1", "+1", "-1", "@x", "\tx", "\rx"}) {
    tables[0].variants[0].name = name;
    EXPECT_THAT(bytes_csv(tables),
                HasSubstr(name == "\rx" ? "\r\nt,\"'\rx\",layer1," : "\r\nt,'" + name + ",layer1,"));
    EXPECT_THAT(results_csv(tables), testing::Not(HasSubstr("," + name)));
  }
  tables[0].variants[0].name = "a=1";
  EXPECT_THAT(bytes_csv(tables), HasSubstr("\r\nt,a=1,layer1,"));
  tables[0].variants[0].published.off = -1.5;
  EXPECT_THAT(results_csv(tables), HasSubstr(",-1.5,"));
}

TEST(Markdown, HasNoControlCharacters) {
  auto tables = two_variants();
  tables[0].variants[0].name = "a\x1b[2J\u009b\nb";
  EXPECT_THAT(to_markdown(tables), HasSubstr("| a\\\\u001b\\[2J\\\\u009b b |"));
}

TEST(Html, NothingOfARunBreaksOut) {
  auto tables = two_variants();
  const std::string plain = to_html(tables);
  tables[0].title = kHostile;
  tables[0].variants[0].name = kHostile;
  report::Run& run = tables[0].variants[0].runs[0];
  run.config = run.machine = run.code_version = run.error = run.folder = kHostile;
  run.config += "\xff <!-- <script>";
  run.epochs[0].boundaries[0].name = kHostile;
  const std::string page = to_html(tables);
  const auto count = [](const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count(plain, "</script"), 4U);
  EXPECT_EQ(count(page, "</script"), 4U);
  EXPECT_EQ(count(page, "<script"), count(plain, "<script"));
  EXPECT_EQ(count(page, "<!--"), count(plain, "<!--"));
  EXPECT_EQ(count(page, "<b>"), count(plain, "<b>"));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;b&gt;|&quot;&#39;&amp;`,\n</button>"));
}

TEST(Html, TheDataComesBackAsItWas) {
  auto tables = two_variants();
  tables[0].variants[0].runs[0].config = kHostile;
  tables[0].variants[0].runs[0].seed = (uint64_t{1} << 53) + 1;  // which a script's numbers do not have
  const auto data = nlohmann::json::parse(page_data(tables));
  const auto& variants = data.at("tables").at(0).at("variants");
  EXPECT_EQ(variants[0].at("runs")[0].at("config"), kHostile);
  EXPECT_EQ(variants[0].at("runs")[0].at("seed"), "9007199254740993");
  EXPECT_EQ(variants[0].at("seeds").at("on").at("rows")[0].at("seed"), "9007199254740993");
  EXPECT_EQ(variants[1].at("off"), nlohmann::json::parse("[[1, 52.0, 2.0, 2]]"));
  EXPECT_EQ(variants[0].at("on"), nlohmann::json::parse("[[1, 60.0, null, 1]]"));
  EXPECT_EQ(variants[0].at("traffic")[0].at("gradients"), 500000);
  const auto& zeros = variants[1].at("diagnostics").at("zeros");
  ASSERT_EQ(zeros.size(), 1U);
  EXPECT_EQ(zeros[0].at("direction"), "gradients");
  EXPECT_EQ(zeros[0].at("points"), nlohmann::json::parse("[[1, 0.25, 0.0, 2]]"));
}

TEST(Html, PointsOfCurvesHaveSixDigits) {
  for (const auto& [value, shown] : std::map<double, double>{{0.1234567890123, 0.123457},
                                                             {-1234.567890123, -1234.57},
                                                             {9.9999999e-7, 1e-6},
                                                             {6.0221408e23, 6.02214e23},
                                                             {5e-324, 5e-324},
                                                             {1.7e308, 1.7e308},
                                                             {0, 0}}) {
    auto tables = two_variants();
    tables[0].variants[0].runs[0].epochs[0].train_loss = value;
    const auto data = nlohmann::json::parse(page_data(tables));
    EXPECT_DOUBLE_EQ(data.at("tables")[0].at("variants")[0].at("train_loss")[0][1], shown);
  }
}

TEST(Html, AsksForNothingFromOutside) {
  const std::string page = to_html(two_variants());
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(testing::ContainsRegex("href=\"[^#d]")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("unsafe-inline")));
  EXPECT_THAT(page, Not(testing::ContainsRegex("<[^>]* on[a-z]+=")));
}

}  // namespace
}  // namespace strait::report
