//===- PlanBase.td - What all plans have in common ----------*- tablegen -*-===//
//
// A plan is an attribute whose parameters stand in its td file only: name, type,
// default and documentation. From them come the struct `Parameters`, syntax and
// messages, `--set name=value`, `attn-compile --list-parameters` and the page of
// the dialect. Plans of other dialects than attn derive from Attn_Plan too.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_PLANBASE_TD
#define ATTN_DIALECT_ATTN_IR_PLANBASE_TD

include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

/// A parameter of a plan. `default` is what IR prints for its default, `sentence`
/// says what it decides; it has no final full stop.
class Attn_PlanParameter<string type, string value, string default,
                         string sentence>
    : DefaultValuedParameter<type, value,
                             sentence # ". Default: `" # default # "`"> {
  string doc = sentence;
  /// The type in the struct, which owns what it has.
  string fieldType = type;
}

class Attn_PlanInt<int default, string sentence>
    : Attn_PlanParameter<"int64_t", !cast<string>(default),
                         !cast<string>(default), sentence>;

class Attn_PlanBool<bit default, string sentence>
    : Attn_PlanParameter<"bool", !if(default, "true", "false"),
                         !if(default, "true", "false"), sentence>;

/// A case of an enumeration; `default` is one as IR prints it.
class Attn_PlanEnum<EnumInfo info, string default, string sentence>
    : Attn_PlanParameter<
          info.cppType,
          !foldl("", info.enumerants, found, case,
                 !if(!eq(case.str, default),
                     info.cppType # "::" # case.symbol, found)),
          default, sentence> {
  assert !ne(defaultValue, ""), "no case '" # default # "' of " # info.className;
}

/// The one parameter that plans of all schedules have: behind their own.
class Attn_PlanKernel
    : Attn_PlanParameter<"::llvm::StringRef", [{""}], "that of the problem",
        "The name of the kernel, in place of the problem's `kernel`: letters, digits and "
        "underscores, the first one no digit. Versions of ptxas schedule kernels by "
        "their names, so that it may be worth a measurement. No plan is chosen with one"> {
  let allocator = [{$_dst = $_allocator.copyInto($_self);}];
  let fieldType = "std::string";
}

/// `snake_case` as C++ has it: `snakeCase`.
class Attn_CamelBack<string name> {
  string result = !foldl("", !range(!size(name)), text, i,
      text # !cond(
          !eq(!substr(name, i, 1), "_"): "",
          !eq(i, 0): !substr(name, 0, 1),
          !eq(!substr(name, !if(!eq(i, 0), 0, !sub(i, 1)), 1), "_"):
            !toupper(!substr(name, i, 1)),
          true: !substr(name, i, 1)));
}

/// A name that a parameter had in earlier versions: an error says the new one.
class Attn_RenamedParameter<string oldName, string newName> {
  string was = oldName;
  string is = newName;
}

/// The plan of the schedule `schedule`, as the attribute `attrMnemonic`. The
/// class has to define
///
///   - `getThreads`, the number of threads of a CTA;
///   - `verify(emitError, const Parameters &)`: what needs no problem and no
///     target, such as powers of two.
class Attn_Plan<Dialect dialect, string name, string attrMnemonic,
                string schedule, dag ownParameters,
                list<Attn_RenamedParameter> renamed = []>
    : AttrDef<dialect, name,
              [DeclareAttrInterfaceMethods<Attn_PlanInterface>]> {
  let mnemonic = attrMnemonic;
  let summary = "plan of the schedule " # schedule;
  defvar planParameters = !con(ownParameters, (ins Attn_PlanKernel<>:$kernel));
  let parameters = planParameters;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  // Nobody counts arguments: plans are made from the struct.
  let skipDefaultBuilders = 1;

  defvar indices = !range(!size(planParameters));
  defvar names = !foreach(i, indices, !getdagname(planParameters, i));
  defvar fields = !foreach(n, names, Attn_CamelBack<n>.result);
  defvar types = !foreach(i, indices,
      !getdagarg<Attn_PlanParameter>(planParameters, i).cppType);
  defvar fieldTypes = !foreach(i, indices,
      !getdagarg<Attn_PlanParameter>(planParameters, i).fieldType);
  defvar values = !foreach(i, indices,
      !getdagarg<Attn_PlanParameter>(planParameters, i).defaultValue);
  defvar docs = !foreach(i, indices,
      !getdagarg<Attn_PlanParameter>(planParameters, i).doc);

  defvar getters = !foreach(f, fields,
      "get" # !toupper(!substr(f, 0, 1)) # !substr(f, 1) # "()");

  let extraClassDeclaration = [{
    /// The plan's parameters by name, with their defaults.
    struct Parameters {
      }] # !interleave(!foreach(i, indices,
              fieldTypes[i] # " " # fields[i] # " = " # values[i] # ";"),
              "\n      ") # [{
      /// All of them, in the order in which they print.
      ::llvm::SmallVector<::mlir::attn::PlanField> getFields();
    };
    /// The name of the schedule and, for messages, former names.
    static ::mlir::attn::PlanSyntax getSyntax();
    static }] # cppClassName # [{ get(::mlir::MLIRContext *context,
                      const Parameters &parameters);
    /// Null after a diagnostic.
    static }] # cppClassName # [{ getChecked(
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError,
        ::mlir::MLIRContext *context, Parameters parameters);
    static ::llvm::LogicalResult verify(
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError,
        const Parameters &parameters);
    /// A copy to change and to make another plan from.
    Parameters getParameters() const;
  }];

  let extraClassDefinition = [{
    ::mlir::attn::PlanSyntax $cppClass::getSyntax() {
      return {"}] # schedule # [{", {}] # !interleave(!foreach(r, renamed,
          "{\"" # r.was # "\", \"" # r.is # "\"}"), ", ") # [{}};
    }
    ::llvm::SmallVector<::mlir::attn::PlanField>
    $cppClass::Parameters::getFields() {
      return {}] # !interleave(!foreach(i, indices,
          "\n          ::mlir::attn::PlanField::get(\"" # names[i]
          # "\", R\"doc(" # docs[i] # ")doc\", " # fields[i] # ")"), ",") # [{};
    }
    $cppClass $cppClass::get(::mlir::MLIRContext *context,
                             const Parameters &parameters) {
      return Base::get(context}] # !interleave(!foreach(f, fields,
          ", parameters." # f), "") # [{);
    }
    $cppClass $cppClass::getChecked(
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError,
        ::mlir::MLIRContext *context, Parameters parameters) {
      return Base::getChecked(emitError, context}] # !interleave(!foreach(f,
          fields, ", parameters." # f), "") # [{);
    }
    ::llvm::LogicalResult $cppClass::verify(
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError}]
        # !interleave(!foreach(i, indices, ", " # types[i] # " " # fields[i]),
                      "") # [{) {
      if (!kernel.empty() &&
          ::mlir::failed(::mlir::attn::verifyKernelName(emitError, kernel)))
        return ::mlir::failure();
      return verify(emitError, Parameters{}] # !interleave(!foreach(i, indices,
          fieldTypes[i] # "(" # fields[i] # ")"), ", ") # [{});
    }
    $cppClass::Parameters $cppClass::getParameters() const {
      return {}] # !interleave(!foreach(i, indices,
          fieldTypes[i] # "(" # getters[i] # ")"), ", ") # [{};
    }
    ::llvm::StringRef $cppClass::getSchedule() const {
      return getSyntax().schedule;
    }
    ::llvm::StringRef $cppClass::getKernelName() const { return getKernel(); }
    std::vector<::mlir::attn::PlanParameterInfo>
    $cppClass::listParameters() const {
      Parameters parameters = getParameters();
      return ::mlir::attn::describePlanFields(parameters.getFields());
    }
    ::mlir::attn::PlanAttrInterface $cppClass::withParameters(
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError,
        ::llvm::ArrayRef<::mlir::attn::PlanParameter> parameters) const {
      Parameters changed = getParameters();
      if (::mlir::failed(::mlir::attn::setPlanFields(
              emitError, getSyntax(), changed.getFields(), parameters)))
        return {};
      return getChecked(emitError, getContext(), changed);
    }
    ::mlir::Attribute $cppClass::parse(::mlir::AsmParser &parser,
                                       ::mlir::Type) {
      ::llvm::SMLoc loc = parser.getCurrentLocation();
      Parameters parameters;
      if (::mlir::failed(::mlir::attn::parsePlanFields(
              parser, getSyntax(), parameters.getFields())))
        return {};
      return getChecked([&] { return parser.emitError(loc); },
                        parser.getContext(), parameters);
    }
    void $cppClass::print(::mlir::AsmPrinter &printer) const {
      Parameters parameters = getParameters(), defaults;
      ::mlir::attn::printPlanFields(printer, parameters.getFields(),
                                    defaults.getFields());
    }
  }];
}

#endif // ATTN_DIALECT_ATTN_IR_PLANBASE_TD
