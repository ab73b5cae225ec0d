//===- RegisterModel.cpp - Registers that ptxas will need -----------------===//

#include "attn/Planner/Facts/RegisterModel.h"
#include "attn/Support/Files.h"
#include "attn/Support/JSON.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <cmath>
#include <optional>

using namespace mlir::attn;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

static constexpr int64_t kModelVersion = 1;

static constexpr llvm::StringLiteral kNames[] = {
#define REGISTER_FEATURE(id, name) name,
#include "attn/Planner/Facts/RegisterFeatures.def"
#undef REGISTER_FEATURE
};

using Values = std::array<int64_t, std::size(kNames)>;

static Values listValues(const RegisterFeatures &features) {
  return {
#define REGISTER_FEATURE(id, name) features.id,
#include "attn/Planner/Facts/RegisterFeatures.def"
#undef REGISTER_FEATURE
  };
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

class RegisterModel::Reader {
public:
  explicit Reader(StringRef name) : name(name) {}
  llvm::Expected<RegisterModel> read(StringRef text);

private:
  llvm::Error fail(const Twine &place, const Twine &what) {
    return llvm::createStringError("register model " + name + ": " + place +
                                   ": " + what);
  }
  llvm::Expected<unsigned> readFeature(StringRef feature, const Twine &place);
  llvm::Error readConditions(const json::Value *value, const Twine &place,
                             Conditions &result);
  llvm::Error readTerm(const json::Object &object, const Twine &place,
                       Term &term);
  llvm::Error readKernel(const json::Value &value, StringRef kernel,
                         RegisterModel &model);
  llvm::Error readLimits(const json::Array *rows, std::vector<int64_t> &limits);

  StringRef name;
};

llvm::Expected<unsigned>
RegisterModel::Reader::readFeature(StringRef feature, const Twine &place) {
  const auto *found = llvm::find(kNames, feature);
  if (found == std::end(kNames))
    return fail(place, "expected a feature of RegisterFeatures.def, got '" +
                           feature + "'");
  return found - std::begin(kNames);
}

llvm::Error RegisterModel::Reader::readConditions(const json::Value *value,
                                                  const Twine &place,
                                                  Conditions &result) {
  if (!value)
    return llvm::Error::success();
  const json::Object *fields = value->getAsObject();
  if (!fields)
    return fail(place, "expected an object");
  for (const auto &[key, each] : *fields) {
    llvm::Expected<unsigned> feature = readFeature(StringRef(key), place);
    if (!feature)
      return feature.takeError();
    llvm::Expected<Condition> condition = Condition::parse(each);
    if (!condition)
      return fail(place + "." + StringRef(key),
                  llvm::toString(condition.takeError()));
    result.emplace_back(*feature, *condition);
  }
  return llvm::Error::success();
}

llvm::Error RegisterModel::Reader::readTerm(const json::Object &object,
                                            const Twine &place, Term &term) {
  std::optional<StringRef> called = object.getString("term");
  std::optional<double> weight = object.getNumber("weight");
  if (!called || !weight)
    return fail(place, "expected a term's name and a weight");
  term.name = called->str();
  term.weight = *weight;
  term.most = object.getInteger("most").value_or(0);
  if (const json::Array *factors = object.getArray("of"))
    for (const json::Value &factor : *factors) {
      llvm::Expected<unsigned> feature =
          readFeature(factor.getAsString().value_or(""), place + ".of");
      if (!feature)
        return feature.takeError();
      term.factors.push_back(*feature);
    }
  if (std::optional<StringRef> count = object.getString("count")) {
    llvm::Expected<unsigned> feature = readFeature(*count, place + ".count");
    if (!feature)
      return feature.takeError();
    term.count = *feature;
  }
  if (llvm::Error error =
          readConditions(object.get("when"), place + ".when", term.all))
    return error;
  if (const json::Array *any = object.getArray("any"))
    for (const json::Value &each : *any)
      if (llvm::Error error =
              readConditions(&each, place + ".any", term.any.emplace_back()))
        return error;
  return llvm::Error::success();
}

llvm::Error RegisterModel::Reader::readKernel(const json::Value &value,
                                              StringRef kernel,
                                              RegisterModel &model) {
  const json::Object *object = value.getAsObject();
  const json::Array *terms = object ? object->getArray("terms") : nullptr;
  if (!terms)
    return fail("kernels." + kernel, "expected an object with an array "
                                     "\"terms\"");
  for (const auto &[i, each] : llvm::enumerate(*terms)) {
    std::string place =
        ("kernels." + kernel + ".terms[" + Twine(i) + "]").str();
    const json::Object *term = each.getAsObject();
    if (!term)
      return fail(place, "expected an object");
    if (llvm::Error error =
            readTerm(*term, place, model.kernels[kernel].emplace_back()))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error RegisterModel::Reader::readLimits(const json::Array *rows,
                                              std::vector<int64_t> &limits) {
  if (!rows)
    return fail("the whole", "expected an array \"limits\"");
  std::vector<std::optional<int64_t>> values(std::size(kRegisterLimitNames));
  for (const auto &[i, row] : llvm::enumerate(*rows)) {
    std::string place = ("limits[" + Twine(i) + "]").str();
    const json::Object *object = row.getAsObject();
    std::optional<StringRef> limit;
    std::optional<int64_t> value;
    if (object) {
      limit = object->getString("name");
      value = object->getInteger("value");
    }
    if (!limit || !value)
      return fail(place, "expected an object with a name and an integer value");
    unsigned index = findRegisterLimit(*limit);
    if (index == values.size())
      return fail(place, "unknown limit '" + *limit + "'");
    if (values[index])
      return fail(place, "limit '" + *limit + "' stands there twice");
    values[index] = value;
  }
  for (auto [limit, value] : llvm::zip(kRegisterLimitNames, values)) {
    if (!value)
      return fail("the whole",
                  "expected a limit '" + StringRef(limit) + "', got none");
    limits.push_back(*value);
  }
  return llvm::Error::success();
}

llvm::Expected<RegisterModel> RegisterModel::Reader::read(StringRef text) {
  llvm::Expected<json::Value> parsed = parseJSON(text);
  if (!parsed)
    return fail("JSON", llvm::toString(parsed.takeError()));
  const json::Object *root = parsed->getAsObject();
  const json::Object *kernels = root ? root->getObject("kernels") : nullptr;
  std::optional<StringRef> ptxas;
  if (root)
    ptxas = root->getString("ptxas");
  if (!kernels || !ptxas || root->getInteger("version") != kModelVersion)
    return fail("the whole", "expected version " + Twine(kModelVersion) +
                                 ", ptxas and an object \"kernels\"");
  RegisterModel model;
  model.version = ptxas->str();
  for (const auto &[kernel, value] : *kernels)
    if (llvm::Error error = readKernel(value, StringRef(kernel), model))
      return std::move(error);
  if (llvm::Error error = readLimits(root->getArray("limits"), model.limits))
    return std::move(error);
  return std::move(model);
}

llvm::Expected<RegisterModel> RegisterModel::parse(StringRef json,
                                                   StringRef name) {
  return Reader(name).read(json);
}

static RegisterModel &getModel() {
  static RegisterModel model = [] {
    static constexpr char text[] =
#include "Registers.inc"
        ;
    // The text is part of the library, and a test reads it.
    return llvm::cantFail(RegisterModel::parse(text, "shipped"));
  }();
  return model;
}

const RegisterModel &RegisterModel::getUsed() { return getModel(); }

llvm::Error mlir::attn::useRegisterModel(StringRef path) {
  llvm::Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  llvm::Expected<RegisterModel> model = RegisterModel::parse(*text, path);
  if (!model)
    return model.takeError();
  getModel() = std::move(*model);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Asking
//===----------------------------------------------------------------------===//

ResourceSum RegisterModel::count(StringRef kernel,
                                 const RegisterFeatures &features,
                                 StringRef only) const {
  Values values = listValues(features);
  auto holds = [&](const Conditions &conditions) {
    return llvm::all_of(conditions, [&](const auto &each) {
      return each.second.holds(values[each.first]);
    });
  };
  // Terms of one name that follow each other are one part of the sum.
  ResourceSum sum;
  StringRef last;
  double size = 0;
  int64_t count = 1;
  auto flush = [&] { sum.add(last, std::llround(size), count); };
  auto found = kernels.find(kernel);
  for (const Term &term : found->second) {
    if ((!only.empty() && term.name != only) || !holds(term.all) ||
        (!term.any.empty() && llvm::none_of(term.any, holds)))
      continue;
    int64_t product = 1;
    for (unsigned factor : term.factors)
      product *= values[factor];
    if (term.most != 0)
      product = std::min(product, term.most);
    int64_t times = term.count ? values[*term.count] : 1;
    if (term.name != last || times != count) {
      flush();
      last = term.name;
      size = 0;
      count = times;
    }
    size += term.weight * double(product);
  }
  flush();
  return sum;
}
