//===- QualifierTest.cpp - Every qualifier counts, or a reason is given ---===//
//
// Takes qualifiers of each form of Inputs/forms.txt away and exchanges them for
// their alternatives. What still decodes, and to the same, has no effect then:
// Inputs/qualifiers.txt has to say why.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Simulator/PTX/ProgramImpl.h"
#include "../TestForms.h"
#include "../TestKernel.h"
#include <set>

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;
using llvm::SmallVector;
using llvm::StringRef;

namespace {

/// Lines of qualifiers.txt: `without BASES | QUALIFIERS | reason` and
/// `with BASES | QUALIFIERS | effect`. `-` is no qualifier, `*` each base.
struct Rule {
  bool hasEffect = false;
  std::set<std::string> bases, qualifiers;
  std::string text;
  unsigned uses = 0;

  bool covers(const std::string &base, const std::string &one,
              const std::string &other) const {
    return (bases.count("*") || bases.count(base)) && qualifiers.count(one) &&
           qualifiers.count(other);
  }
};

std::set<std::string> splitWords(StringRef text) {
  SmallVector<StringRef> words;
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  std::set<std::string> result;
  for (StringRef word : words)
    result.insert(word.str());
  return result;
}

std::vector<Rule> readRules() {
  std::string file = readInput("qualifiers.txt");
  SmallVector<StringRef> lines;
  StringRef(file).split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::vector<Rule> rules;
  for (StringRef line : lines) {
    if (line.starts_with("#"))
      continue;
    SmallVector<StringRef> parts;
    line.split(parts, " | ");
    EXPECT_EQ(parts.size(), 3u) << line.str();
    if (parts.size() != 3)
      continue;
    auto [kind, bases] = parts[0].split(' ');
    EXPECT_TRUE(kind == "with" || kind == "without") << line.str();
    rules.push_back(
        {kind == "with", splitWords(bases), splitWords(parts[1]), line.str()});
  }
  return rules;
}

void append(std::string &out, uint64_t value) {
  out += std::to_string(value) + ",";
}

/// What decoding leaves of a module, without its texts; empty where it does
/// not decode.
std::string fingerprint(StringRef chip, const std::string &statement) {
  static uint64_t numUnknown = 0;
  auto program = parsePTX(makeModule(chip, statement), "form.ptx");
  if (!program) {
    llvm::consumeError(program.takeError());
    return "";
  }
  const auto &impl = static_cast<const ProgramImpl &>(**program);
  std::string out;
  for (const Inst &inst : impl.code) {
    append(out, reinterpret_cast<uintptr_t>(inst.fn));
    for (uint64_t value : {uint64_t(inst.imm), inst.imm2, uint64_t(inst.flags),
                           inst.written, uint64_t(inst.cls)})
      append(out, value);
    for (unsigned i = 0; i < inst.numOps; ++i)
      for (uint64_t value :
           {uint64_t(inst.ops[i].off), uint64_t(inst.ops[i].meta),
            uint64_t(inst.ops[i].cls), uint64_t(inst.ops[i].negated)})
        append(out, value);
    if (inst.auxBytes)
      out.append(static_cast<const char *>(inst.aux), inst.auxBytes);
    else if (inst.aux) // Nobody knows: not the same as anything.
      append(out, ++numUnknown);
  }
  for (const ConstSlot &slot : impl.constants)
    for (uint64_t value : {uint64_t(slot.kind), slot.value})
      append(out, value);
  for (uint64_t value :
       {uint64_t(impl.sharedGranule), uint64_t(impl.globalGranule),
        uint64_t(impl.communicates), uint64_t(impl.narrowScopes),
        uint64_t(impl.usesAsyncProxy), uint64_t(impl.cancelsLaunches)})
    append(out, value);
  return out;
}

/// A mnemonic in parts and its operands.
struct Form {
  SmallVector<std::string> parts;
  std::string operands;

  explicit Form(StringRef text) {
    auto [op, rest] = text.split(' ');
    operands = rest.str();
    SmallVector<StringRef> names;
    op.split(names, '.');
    for (StringRef name : names)
      parts.push_back(name.str());
  }
  std::string getText() const {
    return llvm::join(parts, ".") + " " + operands;
  }
};

/// The two qualifiers that two forms differ in, if it is one place.
std::optional<std::pair<std::string, std::string>>
getDifference(const Form &a, const Form &b) {
  if (a.parts.size() != b.parts.size())
    return std::nullopt;
  std::optional<std::pair<std::string, std::string>> found;
  for (size_t i = 0; i < a.parts.size(); ++i) {
    if (a.parts[i] == b.parts[i])
      continue;
    if (found || !i)
      return std::nullopt;
    found.emplace(a.parts[i], b.parts[i]);
  }
  return found;
}

/// Looks at all pairs of forms and remembers which rules they need.
class Walk {
public:
  explicit Walk(std::vector<Rule> &rules) : rules(rules) {}

  void run(StringRef chip, const std::vector<std::string> &forms) {
    std::vector<std::pair<Form, std::string>> decoded;
    for (const std::string &text : forms) {
      Form form(text);
      std::string whole = fingerprint(chip, fillOperands(text));
      ASSERT_FALSE(whole.empty()) << text;
      for (size_t i = 1; i < form.parts.size(); ++i) {
        Form shorter = form;
        shorter.parts.erase(shorter.parts.begin() + i);
        std::string left = fingerprint(chip, fillOperands(shorter.getText()));
        if (!left.empty())
          judge(form.parts[0], form.parts[i], "-", whole == left, text);
      }
      // Lines of hundreds of forms differ in types and shapes.
      for (size_t i = decoded.size() < 40 ? 0 : decoded.size() - 40;
           i < decoded.size(); ++i)
        if (auto pair = getDifference(decoded[i].first, form))
          judge(form.parts[0], pair->first, pair->second,
                decoded[i].second == whole, text);
      decoded.emplace_back(std::move(form), std::move(whole));
    }
  }

  /// What needs a rule and has none, once each.
  std::set<std::string> missing;

private:
  void judge(const std::string &base, const std::string &one,
             const std::string &other, bool isSame, const std::string &text) {
    bool isExcused = false;
    for (Rule &rule : rules) {
      if (!rule.covers(base, one, other))
        continue;
      if (rule.hasEffect == !isSame) {
        ++rule.uses;
        isExcused = true;
      }
    }
    if (isSame && !isExcused)
      missing.insert(base + " | " + one + " " + other + " | as in " + text);
  }

  std::vector<Rule> &rules;
};

} // namespace

TEST(Qualifiers, HaveAnEffectOrAReason) {
  std::vector<Rule> rules = readRules();
  Walk walk(rules);
  std::string file = readInput("forms.txt");
  SmallVector<StringRef> lines;
  StringRef(file).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    if (line.starts_with("#") || line.starts_with("refused ") ||
        line.contains(" ; "))
      continue;
    auto [chip, form] = line.split(' ');
    std::vector<std::string> forms;
    expand(form.str(), forms);
    if (forms.size() > 400) // The first of them have all qualifiers.
      forms.resize(400);
    walk.run(chip, forms);
  }
  for (const std::string &each : walk.missing)
    ADD_FAILURE() << "changes nothing, and qualifiers.txt does not say why: "
                  << each;
  for (const Rule &rule : rules)
    EXPECT_GT(rule.uses, 0u) << "no form needs: " << rule.text;
}
