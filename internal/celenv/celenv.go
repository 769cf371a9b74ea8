// SPDX-License-Identifier: Apache-2.0

// Package celenv compiles and evaluates matchConditions and the expressions of
// policies with kube-apiserver's CEL compiler and cost limits. It is the only importer
// of CEL.
//
// The variables are object, oldObject, request and authorizer, as in kube-apiserver,
// params and namespaceObject for policies, and cluster, an extension of ours, with the
// name and the labels of the calling cluster.
package celenv

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

const clusterVariable = "cluster"

// Compiler compiles conditions and caches them by expression, so that a reload
// compiles only what is new: an expression takes about a millisecond. It is safe
// for concurrent use.
type Compiler struct {
	environment *environment.EnvSet
	compiler    plugin.Compiler

	mu       sync.Mutex // guards what follows; held while compiling
	cache    cache
	policies [2]*cel.Env // of the expressions of policies, without and with params; made for the first one
	// mutations are of the expressions of mutations, each extending one of policies.
	mutations map[*cel.Env]*cel.Env
}

// NewCompiler returns a Compiler with an empty cache.
func NewCompiler() *Compiler {
	env, err := withCluster(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		// The environment depends on nothing but code; every test makes sure of it.
		panic(err)
	}
	return &Compiler{environment: env, compiler: plugin.NewCompiler(env), mutations: map[*cel.Env]*cel.Env{}}
}

// withCluster declares the variable that kube-apiserver does not have, and bounds what it does
// not.
func withCluster(base *environment.EnvSet) (*environment.EnvSet, error) {
	cluster := apiservercel.NewObjectType("dispatcher.Cluster", map[string]*apiservercel.DeclField{
		"name":   apiservercel.NewDeclField("name", apiservercel.StringType, true, nil, nil),
		"labels": apiservercel.NewDeclField("labels", apiservercel.NewMapType(apiservercel.StringType, apiservercel.StringType, -1), true, nil, nil),
	})
	return base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), // always
		EnvOptions:        []cel.EnvOption{cel.Variable(clusterVariable, cluster.CelType())},
		ProgramOptions:    []cel.ProgramOption{cel.CustomDecoratorV2(boundQuantities)},
		DeclTypes:         []*apiservercel.DeclType{cluster},
	})
}

// Compile compiles one expression, which must be a bool. Its error says what is
// wrong with the expression and where in it, in kube-apiserver's words.
func (c *Compiler) Compile(expression string) (*Condition, error) {
	return c.cached(source{text: expression})
}

// CompileWithParams compiles a condition of a policy that has a paramKind. One that looks
// at params is evaluated by Evaluation.Condition only.
func (c *Compiler) CompileWithParams(expression string) (*Condition, error) {
	return c.cached(source{text: expression, params: true})
}

func (c *Compiler) cached(of source) (*Condition, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if done, ok := c.cache.find(of); ok {
		return done.condition, done.err
	}
	condition, err := c.compile(of)
	c.cache.add(of, compiled{condition, err})
	return condition, err
}

// compile uses the environment of stored expressions: a manifest that some
// kube-apiserver has accepted must not be refused here. An expression asks the authorizer
// if it does not compile without that.
func (c *Compiler) compile(of source) (_ *Condition, err error) {
	defer refusePanic(&err)
	declared := plugin.OptionalVariableDeclarations{HasParams: of.params}
	result := c.compiler.CompileCELExpression(of, declared, environment.StoredExpressions)
	var compilation *apiservercel.CompilationError
	if result.Error != nil && errors.As(result.Error.Cause, &compilation) && asksAuthorizer(compilation.Issues) {
		declared.HasAuthorizer = true
		result = c.compiler.CompileCELExpression(of, declared, environment.StoredExpressions)
	}
	if result.Error != nil {
		return nil, errors.New(result.Error.Detail)
	}
	condition := &Condition{expression: of.text, program: result.Program, authorizer: declared.HasAuthorizer}
	c.look(condition)
	return condition, nil
}

// look notes whether there is a comprehension in the condition, whether it looks into
// the objects, and which predicate says the same.
func (c *Compiler) look(condition *Condition) {
	parsed, issues := c.environment.StoredExpressionsEnv().Parse(condition.expression)
	if issues.Err() != nil {
		condition.loops, condition.objects, condition.params = true, true, true // to be on the safe side: it has been compiled
		return
	}
	reads := readsOf(parsed.NativeRep())
	condition.loops, condition.objects, condition.params = reads.loops, reads.objects, reads.params
	if !condition.authorizer {
		condition.predicate = predicateOf(parsed.NativeRep().Expr())
	}
}

// refusePanic makes a panic of CEL's compiler, which some expressions cause ([?object.spec] of
// cel-go 0.29), a problem of the expression.
func refusePanic(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("compilation failed: it panics CEL's compiler: %.200v", r)
	}
}

func asksAuthorizer(issues *cel.Issues) bool {
	for _, issue := range issues.Errors() {
		if strings.HasPrefix(issue.Message, "undeclared reference to '"+plugin.AuthorizerVarName+"'") {
			return true
		}
	}
	return false
}

// source is the text of a condition, as the API server's compiler asks for it, and
// whether params are declared.
type source struct {
	text   string
	params bool
}

func (s source) GetExpression() string    { return s.text }
func (s source) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }
