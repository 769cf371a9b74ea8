// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"fmt"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// Checker checks the expressions of policies against the types of kinds, as kube-apiserver
// does (k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go). Policies
// that are for the same kinds share an environment, which takes some milliseconds to make.
// It is not safe for concurrent use.
type Checker struct {
	base  *environment.EnvSet
	types *policyschema.Types
	envs  map[checked]*environment.EnvSet
}

// checked is what expressions are checked against.
type checked struct{ object, params schema.GroupVersionKind }

// NewChecker returns a Checker for kinds that types knows.
func (c *Compiler) NewChecker(types *policyschema.Types) *Checker {
	return &Checker{base: c.environment, types: types, envs: map[checked]*environment.EnvSet{}}
}

// Expressions are those of one policy, for one kind of objects.
type Expressions struct{ composited *plugin.CompositedCompiler }

// For returns the expressions of a policy with these variables, whose objects are of a kind.
// params is the kind of its params; empty: it has none.
func (k *Checker) For(object, params schema.GroupVersionKind, variables []admissionregistrationv1.Variable) *Expressions {
	env, err := k.environment(checked{object, params})
	var composited *plugin.CompositedCompiler
	if err == nil {
		composited, err = plugin.NewCompositedCompilerForTypeChecking(env)
	}
	if err != nil { // a kind with a name that CEL has for something else
		return &Expressions{}
	}
	composited.Compiler = checking{composited}
	for i := range variables {
		composited.CompileAndStoreVariable((*checkedVariable)(&variables[i]), plugin.OptionalVariableDeclarations{HasParams: !params.Empty(), HasAuthorizer: true}, environment.StoredExpressions)
	}
	return &Expressions{composited}
}

// Check returns what is wrong with an expression; nil: nothing is.
func (x *Expressions) Check(expression string) error {
	if x.composited == nil {
		return nil
	}
	result := x.composited.CompileCELExpression(unchecked(expression), plugin.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	if result.Error == nil {
		return nil
	}
	if result.Error.Type != apiservercel.ErrorTypeInvalid {
		return fmt.Errorf("type checking error: %w", result.Error)
	}
	return result.Error
}

func (k *Checker) environment(of checked) (*environment.EnvSet, error) {
	if env := k.envs[of]; env != nil {
		return env, nil
	}
	namespace, request := plugin.BuildNamespaceType(), plugin.BuildRequestType()
	declared := []*apiservercel.DeclType{namespace, request}
	variables := []cel.EnvOption{
		cel.Variable(plugin.NamespaceVarName, namespace.CelType()), cel.Variable(plugin.RequestVarName, request.CelType()),
		cel.Variable(plugin.AuthorizerVarName, library.AuthorizerType),
	}
	declare := func(of schema.GroupVersionKind, suffix string, names ...string) {
		t := cel.DynType
		if d := k.declaration(of, suffix); d != nil {
			declared = append(declared, d)
			t = d.CelType()
		}
		for _, name := range names {
			variables = append(variables, cel.Variable(name, t))
		}
	}
	declare(of.object, "", plugin.ObjectVarName, plugin.OldObjectVarName)
	if !of.params.Empty() {
		declare(of.params, "Params", plugin.ParamsVarName)
	}
	env, err := k.base.Extend(environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: variables, DeclTypes: declared})
	if err == nil {
		k.envs[of] = env
	}
	return env, err
}

// declaration is the type of the objects of a kind; nil: it is not known. kube-apiserver puts
// a number behind the kind.
func (k *Checker) declaration(of schema.GroupVersionKind, suffix string) *apiservercel.DeclType {
	shape, ok := k.types.Shape(of)
	if !ok || shape == nil {
		return nil
	}
	return declarationOf(shape).MaybeAssignTypeName(of.Kind + suffix)
}

func declarationOf(s *policyschema.Shape) *apiservercel.DeclType {
	switch s.Form {
	case policyschema.Object:
		fields := make(map[string]*apiservercel.DeclField, len(s.Fields))
		for name, field := range s.Fields {
			if escaped, ok := apiservercel.Escape(name); ok {
				fields[escaped] = apiservercel.NewDeclField(escaped, declarationOf(field), false, nil, nil)
			}
		}
		return apiservercel.NewObjectType("object", fields)
	case policyschema.Map:
		return apiservercel.NewMapType(apiservercel.StringType, declarationOf(s.Element), -1)
	case policyschema.List:
		return apiservercel.NewListType(declarationOf(s.Element), -1)
	case policyschema.String:
		return apiservercel.StringType
	case policyschema.Bytes:
		return apiservercel.BytesType
	case policyschema.Duration:
		return apiservercel.DurationType
	case policyschema.Timestamp:
		return apiservercel.TimestampType
	case policyschema.Bool:
		return apiservercel.BoolType
	case policyschema.Int:
		return apiservercel.IntType
	case policyschema.Double:
		return apiservercel.DoubleType
	case policyschema.Any:
	}
	return apiservercel.DynType
}

// checking compiles without a program, and whatever the result's type is.
type checking struct{ composited *plugin.CompositedCompiler }

// CompileCELExpression implements plugin.Compiler.
func (c checking) CompileCELExpression(of plugin.ExpressionAccessor, _ plugin.OptionalVariableDeclarations, mode environment.Type) (result plugin.CompilationResult) {
	var failed error
	defer func() {
		if failed != nil {
			result = plugin.CompilationResult{Error: &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: failed.Error()}, ExpressionAccessor: of}
		}
	}()
	defer refusePanic(&failed)
	env, err := c.composited.Env(mode)
	if err != nil {
		return plugin.CompilationResult{Error: &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: fmt.Sprintf("fail to build env: %v", err)}, ExpressionAccessor: of}
	}
	ast, issues := env.Compile(of.GetExpression())
	if issues != nil {
		return plugin.CompilationResult{Error: &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: issues.String()}, ExpressionAccessor: of}
	}
	return plugin.CompilationResult{OutputType: ast.OutputType()}
}

// unchecked is an expression of any type.
type unchecked string

// GetExpression implements plugin.ExpressionAccessor.
func (u unchecked) GetExpression() string { return string(u) }

// ReturnTypes implements plugin.ExpressionAccessor.
func (unchecked) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType} }

// checkedVariable is a variable of any type.
type checkedVariable admissionregistrationv1.Variable

// GetName implements plugin.NamedExpressionAccessor.
func (v *checkedVariable) GetName() string { return v.Name }

// GetExpression implements plugin.ExpressionAccessor.
func (v *checkedVariable) GetExpression() string { return v.Expression }

// ReturnTypes implements plugin.ExpressionAccessor.
func (*checkedVariable) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType, cel.DynType} }
