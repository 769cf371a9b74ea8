// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Expression is a compiled expression of a policy, safe for concurrent use.
type Expression struct {
	text    string
	program cel.Program
	planned
	reading
	authorizer bool // it asks the cluster's authorizer
}

// ReadsObjects reports whether the expression looks into object or oldObject itself,
// which must then be converted, as large as they are.
func (x *Expression) ReadsObjects() bool { return x.objects }

// Namespace says what the expression looks at of namespaceObject.
func (x *Expression) Namespace() NamespaceUse { return x.namespace }

// Authorizes reports whether the expression itself may ask the cluster's authorizer.
func (x *Expression) Authorizes() bool { return x.authorizer }

// Scope is the variables of one policy, compiled. It is frozen once all expressions
// of the policy are compiled, and safe for concurrent use then.
type Scope struct {
	compiler  *Compiler
	env       *cel.Env
	mutations *cel.Env                           // for the expressions of mutations; made for the first one
	asking    map[*cel.Env]*cel.Env              // each with the authorizer, once an expression has asked it
	fields    map[string]*apiservercel.DeclField // of the type of variables, which env has
	variables []namedExpression
	indexes   map[string]int
}

type namedExpression struct {
	name string
	*Expression
}

// Result is what an expression of a policy may be.
type Result uint8

// The results.
const (
	Bool          Result = iota // a validation
	Text                        // a messageExpression
	TextOrNull                  // the valueExpression of an audit annotation
	AnythingElse                // a variable
	Operations                  // the JSONPatch of a mutation
	Configuration               // the ApplyConfiguration of a mutation
)

func (r Result) types() []*cel.Type {
	switch r {
	case Bool:
		return []*cel.Type{cel.BoolType}
	case Text:
		return []*cel.Type{cel.StringType}
	case TextOrNull:
		return []*cel.Type{cel.StringType, cel.NullType}
	case Operations:
		return []*cel.Type{operationsType}
	case Configuration:
		return []*cel.Type{configurationType}
	}
	return nil
}

// Declarations are the variables that the expressions of some policies have.
type Declarations struct{ Variables, Params bool }

// NewScope returns the Scope of one policy. Making one whose policy has variables takes
// half a millisecond; other policies share their environment.
func (c *Compiler) NewScope(declared Declarations) *Scope {
	c.mu.Lock()
	defer c.mu.Unlock()
	shared := &c.policies[0]
	if declared.Params {
		shared = &c.policies[1]
	}
	if *shared == nil {
		env, err := policyEnvironment(c.environment, declared.Params)
		if err != nil {
			panic(err) // as in NewCompiler
		}
		*shared = env
	}
	return c.scope(*shared, declared.Variables)
}

// scope returns the Scope of an environment, which that of a policy with variables
// extends.
func (c *Compiler) scope(env *cel.Env, variables bool) *Scope {
	s := &Scope{compiler: c, env: env}
	if !variables {
		return s
	}
	s.indexes = map[string]int{}
	declared := apiservercel.NewObjectType(variablesType, map[string]*apiservercel.DeclField{})
	s.fields = declared.Fields
	provider := apiservercel.NewDeclTypeProvider(declared)
	provider.SetRecognizeKeywordAsFieldName(true)
	options, err := provider.EnvOptions(env.CELTypeProvider())
	if err == nil {
		s.env, err = env.Extend(append(options, cel.Variable(plugin.VariableVarName, declared.CelType()))...)
	}
	if err != nil {
		panic(err) // as in NewCompiler
	}
	return s
}

// variablesType is the type of variables, as kube-apiserver calls it.
const variablesType = "kubernetes.variables"

// policyEnvironment is that of stored expressions of policies, as kube-apiserver has
// it, but for the authorizer, which few expressions ask.
func policyEnvironment(base *environment.EnvSet, params bool) (*cel.Env, error) {
	request, namespace := plugin.BuildRequestType(), plugin.BuildNamespaceType()
	variables := []cel.EnvOption{
		cel.Variable(plugin.ObjectVarName, cel.DynType),
		cel.Variable(plugin.OldObjectVarName, cel.DynType),
		cel.Variable(plugin.NamespaceVarName, namespace.CelType()),
		cel.Variable(plugin.RequestVarName, request.CelType()),
	}
	if params {
		variables = append(variables, cel.Variable(plugin.ParamsVarName, cel.DynType))
	}
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), // always
		EnvOptions:        variables,
		DeclTypes:         []*apiservercel.DeclType{namespace, request},
	}, environment.StrictCostOpt)
	if err != nil {
		return nil, err
	}
	return set.StoredExpressionsEnv(), nil
}

// Declare compiles a variable, which the expressions compiled after it may use as
// variables.NAME. One that does not compile is declared all the same, so that what
// uses it has no second problem.
func (s *Scope) Declare(name, text string) error {
	x, of, err := s.compile(text, AnythingElse)
	s.fields[name] = apiservercel.NewDeclField(name, declType(of), true, nil, nil)
	s.indexes[name] = len(s.variables)
	s.variables = append(s.variables, namedExpression{name, x})
	return err
}

// Compile compiles an expression. Its error says what is wrong with it and where in
// it, in kube-apiserver's words.
func (s *Scope) Compile(text string, result Result) (*Expression, error) {
	x, _, err := s.compile(text, result)
	return x, err
}

// ReadsObjects reports whether a variable looks into an object.
func (s *Scope) ReadsObjects() bool {
	return slices.ContainsFunc(s.variables, func(x namedExpression) bool { return x.objects })
}

// Namespace says what the variables look at of namespaceObject.
func (s *Scope) Namespace() (use NamespaceUse) {
	for _, x := range s.variables {
		use = max(use, x.namespace)
	}
	return use
}

// Authorizes reports whether a variable may ask the cluster's authorizer.
func (s *Scope) Authorizes() bool {
	return slices.ContainsFunc(s.variables, func(x namedExpression) bool { return x.Expression != nil && x.authorizer })
}

// Variables is how many variables the policy has.
func (s *Scope) Variables() int { return len(s.variables) }

// compile uses the environment of stored expressions, as for conditions. Those of messages
// have no authorizer; those of audit annotations compile with it, but never see it.
func (s *Scope) compile(text string, result Result) (_ *Expression, of *cel.Type, err error) {
	defer refusePanic(&err)
	s.compiler.mu.Lock()
	defer s.compiler.mu.Unlock()
	env, x := s.envFor(result), &Expression{text: text}
	checked, issues := env.Compile(text)
	if issues != nil && result != Text && asksAuthorizer(issues) {
		env, x.authorizer = s.withAuthorizer(env), result != TextOrNull
		checked, issues = env.Compile(text)
	}
	if issues != nil {
		return nil, nil, errors.New("compilation failed: " + issues.String())
	}
	of = checked.OutputType()
	if err := mustBe(of, result.types()); err != nil {
		return nil, nil, err
	}
	x.reading = readsOf(checked.NativeRep())
	program, err := env.Program(checked, cel.InterruptCheckFrequency(checkFrequency))
	if err != nil {
		return nil, nil, fmt.Errorf("program instantiation failed: %w", err)
	}
	x.program = program
	if env == s.env {
		x.planned = planOf(checked.NativeRep(), env)
	}
	return x, of, nil
}

// withAuthorizer returns the environment, one of the scope's, for expressions that ask it.
func (s *Scope) withAuthorizer(env *cel.Env) *cel.Env {
	if s.asking[env] == nil {
		asking, err := env.Extend(authorizerVariables()...)
		if err != nil {
			panic(err) // as in NewCompiler
		}
		if s.asking == nil {
			s.asking = map[*cel.Env]*cel.Env{}
		}
		s.asking[env] = asking
	}
	return s.asking[env]
}

// envFor returns the environment of an expression, with the compiler locked.
func (s *Scope) envFor(result Result) *cel.Env {
	if result != Operations && result != Configuration {
		return s.env
	}
	if s.mutations == nil {
		s.mutations = s.compiler.mutations[s.env]
	}
	if s.mutations != nil {
		return s.mutations
	}
	env, err := withMutations(s.env)
	if err != nil {
		panic(err) // as in NewCompiler
	}
	s.mutations = env
	if slices.Contains(s.compiler.policies[:], s.env) { // others may ask for it, too
		s.compiler.mutations[s.env] = env
	}
	return env
}

func mustBe(of *cel.Type, types []*cel.Type) error {
	switch {
	case types == nil, slices.ContainsFunc(types, of.IsExactType):
		return nil
	case len(types) == 1:
		return fmt.Errorf("must evaluate to %v but got %v", types[0], of)
	}
	return fmt.Errorf("must evaluate to one of %v but got %v", types, of)
}

// declType is the type of a variable as kube-apiserver declares it: what has no
// counterpart is dynamic.
func declType(of *cel.Type) *apiservercel.DeclType {
	if of == nil {
		return apiservercel.DynType
	}
	if simple, ok := simpleTypes[of]; ok {
		return simple
	}
	if of.HasTrait(traits.ContainerType) && of.HasTrait(traits.IndexerType) {
		switch of := of.Parameters(); len(of) {
		case 1:
			return apiservercel.NewListType(declType(of[0]), -1)
		case 2:
			return apiservercel.NewMapType(declType(of[0]), declType(of[1]), -1)
		}
	}
	return apiservercel.DynType
}

var simpleTypes = map[*cel.Type]*apiservercel.DeclType{
	cel.AnyType:       apiservercel.AnyType,
	cel.BoolType:      apiservercel.BoolType,
	cel.BytesType:     apiservercel.BytesType,
	cel.DoubleType:    apiservercel.DoubleType,
	cel.DurationType:  apiservercel.DurationType,
	cel.IntType:       apiservercel.IntType,
	cel.NullType:      apiservercel.NullType,
	cel.StringType:    apiservercel.StringType,
	cel.TimestampType: apiservercel.TimestampType,
	cel.UintType:      apiservercel.UintType,
}
