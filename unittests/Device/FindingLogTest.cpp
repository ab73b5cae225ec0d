//===- FindingLogTest.cpp - Findings of all launches ----------------------===//

#include "attn/Device/FindingLog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using namespace mlir::attn::device;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

sim::RunReport makeReport(unsigned ptxLine = 7) {
  sim::RunReport report;
  report.completed = true;
  report.counters.warpInstructions = 10;
  sim::Finding finding;
  finding.kind = sim::FindingKind::Race;
  finding.message = "write is not ordered";
  finding.space = "global";
  finding.second.emplace();
  finding.second->ptxLine = ptxLine;
  finding.second->file = "kernels/add.py";
  finding.second->line = 12;
  finding.first = finding.second;
  finding.first->line = 11;
  report.findings.push_back(finding);
  return report;
}

std::string print(const FindingLog &log, ReportForm form) {
  std::string text;
  llvm::raw_string_ostream os(text);
  log.print(os, form);
  return text;
}

TEST(FindingLog, OneFindingForOneCause) {
  FindingLog log;
  EXPECT_EQ(log.addLaunch("add", "main.py:3", makeReport()), 1u);
  // Other instructions of the same lines, and another launch.
  log.addLaunch("add", "main.py:4", makeReport(8));
  EXPECT_EQ(log.count(), 1u);
  EXPECT_EQ(log.getFindings()[0].launches, 2u);
  log.addLaunch("mul", "", makeReport());
  EXPECT_EQ(log.count(), 2u);
  std::string text = print(log, ReportForm::Text);
  EXPECT_THAT(text, HasSubstr("add: note: launch 1 and 1 others at main.py:3"));
  std::string table;
  llvm::raw_string_ostream os(table);
  log.printTable(os);
  EXPECT_THAT(table, HasSubstr("add"));
  EXPECT_THAT(table, HasSubstr("20"));
}

TEST(FindingLog, Estimates) {
  FindingLog log;
  log.addLaunch("add", "", makeReport(), {2.5, "dram", ""});
  log.addLaunch("add", "", makeReport(), {2.5, "dram", ""});
  log.addLaunch("mul", "", makeReport(), {0, "", "no registers"});
  std::string text = print(log, ReportForm::JSON);
  EXPECT_THAT(text, HasSubstr("\"estimated_microseconds\": 5"));
  EXPECT_THAT(text, HasSubstr("\"limiter\": \"dram\""));
  EXPECT_THAT(text, HasSubstr("\"estimate_refused\": \"no registers\""));
}

TEST(FindingLog, KernelsOfOneName) {
  FindingLog log;
  // Without lines of a source, the same line of two modules.
  for (const char *text : {"st.global.u32 [%d0], %r0", "ld.global.u32 %r0"}) {
    sim::RunReport report = makeReport();
    for (auto *site : {&report.findings[0].first, &report.findings[0].second}) {
      (*site)->file.clear();
      (*site)->text = text;
    }
    log.addLaunch("main", "", report);
  }
  EXPECT_EQ(log.count(), 2u);
}

TEST(FindingLog, Forms) {
  FindingLog log;
  log.addLaunch("add", "main.py:3", makeReport());
  EXPECT_THAT(print(log, ReportForm::GitHub),
              HasSubstr("::error file=kernels/add.py,line=12,title=race::add: "
                        "write is not ordered"));
  std::string sarif = print(log, ReportForm::SARIF);
  EXPECT_THAT(sarif, HasSubstr("\"ruleId\": \"race\""));
  EXPECT_THAT(sarif, HasSubstr("\"startLine\": 12"));
  auto json = llvm::json::parse(print(log, ReportForm::JSON));
  ASSERT_TRUE(static_cast<bool>(json));
  const llvm::json::Object &first =
      *(*json->getAsObject()->getArray("findings"))[0].getAsObject();
  EXPECT_EQ(first.getString("kernel"), "add");
  EXPECT_EQ(first.getString("site"), "main.py:3");
  auto form = parseReportForm("xml");
  EXPECT_EQ(llvm::toString(form.takeError()),
            "expected a report as text, json, sarif or github, got 'xml'");
  for (const char *name : {"text", "json", "sarif", "github"})
    llvm::cantFail(parseReportForm(name).takeError());
}

TEST(FindingLog, FormsOfFiles) {
  EXPECT_EQ(getReportForm("a/b.sarif"), ReportForm::SARIF);
  EXPECT_EQ(getReportForm("a.json"), ReportForm::JSON);
  EXPECT_EQ(getReportForm("a.github"), ReportForm::GitHub);
  for (const char *path : {"a.txt", "report", "a.sarif/report", ""})
    EXPECT_EQ(getReportForm(path), ReportForm::Text) << path;
}

TEST(FindingLog, Labels) {
  FindingLog log;
  log.setLabel("sm_80");
  log.addLaunch("add", "", makeReport());
  EXPECT_THAT(print(log, ReportForm::Text), HasSubstr("sm_80: add:"));
  EXPECT_THAT(print(log, ReportForm::GitHub),
              HasSubstr("title=race::sm_80: add: write is not ordered"));
  EXPECT_THAT(print(log, ReportForm::SARIF),
              HasSubstr("\"text\": \"sm_80: add: write is not ordered"));
}

TEST(FindingLog, FindingsWithoutLines) {
  sim::RunReport report = makeReport();
  report.findings[0].first.reset();
  report.findings[0].second.reset();
  FindingLog log;
  log.addLaunch("add", "", report);
  EXPECT_THAT(print(log, ReportForm::GitHub),
              HasSubstr("file=kernel.ptx,line=1,"));
  std::string sarif = print(log, ReportForm::SARIF);
  EXPECT_THAT(sarif, HasSubstr("\"uri\": \"kernel.ptx\""));
  EXPECT_THAT(sarif, Not(HasSubstr("relatedLocations")));
}

TEST(FindingLog, Suppressions) {
  auto list =
      parseSuppressions("# known\nad* race add.py:12: in place\n", "known.txt");
  ASSERT_TRUE(static_cast<bool>(list));
  FindingLog log;
  log.setSuppressions(*list);
  log.addLaunch("add", "", makeReport());
  EXPECT_EQ(log.count(), 0u);
  EXPECT_EQ(print(log, ReportForm::Text), "");
  EXPECT_EQ(print(log, ReportForm::GitHub), "");
  EXPECT_THAT(print(log, ReportForm::JSON), HasSubstr("in place"));
  EXPECT_THAT(print(log, ReportForm::SARIF), HasSubstr("justification"));
  log.addLaunch("mul", "", makeReport());
  EXPECT_EQ(log.count(), 1u);
  auto bad = parseSuppressions("add race *\n", "known.txt");
  EXPECT_EQ(llvm::toString(bad.takeError()),
            "known.txt:1: expected a suppression 'kernel kind place: reason', "
            "got 'add race *'");
}

TEST(FindingLog, RacesOfStreams) {
  FindingLog log;
  OrderRace race;
  race.earlier = {"kernel 'a' (launch 1)", "x.py:1"};
  race.later = {"copy 2 of 4 bytes", ""};
  race.earlierWrites = true;
  race.begin = 16;
  race.end = 20;
  log.addRaces(race, "x");
  log.addRaces(race, "x");
  EXPECT_EQ(log.count(), 1u);
  std::string text = print(log, ReportForm::Text);
  EXPECT_THAT(text, HasSubstr("copy 2 of 4 bytes reads what kernel 'a' (launch "
                              "1) at x.py:1 writes, and nothing orders"));
  EXPECT_THAT(text, Not(HasSubstr("launch 0")));
  // Lines of the program stand for those that kernels have.
  race.later.site = "y.py:7";
  log.addRaces(race, "x");
  EXPECT_THAT(print(log, ReportForm::GitHub),
              HasSubstr("::error file=y.py,line=7,title=race::copy 2 of 4"));
  std::string sarif = print(log, ReportForm::SARIF);
  EXPECT_THAT(sarif, HasSubstr("\"uri\": \"y.py\""));
  EXPECT_THAT(sarif, HasSubstr("\"relatedLocations\""));
  EXPECT_THAT(print(log, ReportForm::JSON),
              HasSubstr("\"earlier_site\": \"x.py:1\""));
}

} // namespace
