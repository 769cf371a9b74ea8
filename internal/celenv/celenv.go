// SPDX-License-Identifier: Apache-2.0

// Package celenv compiles and evaluates matchConditions with kube-apiserver's
// CEL environment and cost limits. It is the only importer of CEL.
//
// The variables are object, oldObject and request, as in kube-apiserver, and
// cluster, an extension of ours, with the name and the labels of the calling
// cluster. There is no authorizer: the dispatcher cannot ask one.
package celenv

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	clusterVariable    = "cluster"
	authorizerVariable = "authorizer"
)

// maxCached bounds the number of cached expressions: registries change, and
// what they once said must not be kept for ever.
const maxCached = 10_000

// Compiler compiles conditions and caches them by expression, so that a reload
// compiles only what is new. It is safe for concurrent use.
type Compiler struct {
	env *cel.Env

	mu     sync.Mutex
	cached map[string]compiled
}

type compiled struct {
	condition *Condition
	err       error
}

// NewCompiler returns a Compiler with an empty cache.
func NewCompiler() *Compiler {
	env, err := newEnv()
	if err != nil {
		// The environment depends on nothing but code; a test makes sure of it.
		panic(err)
	}
	return &Compiler{env: env, cached: map[string]compiled{}}
}

func newEnv() (*cel.Env, error) {
	request := plugin.BuildRequestType()
	cluster := apiservercel.NewObjectType("dispatcher.Cluster", map[string]*apiservercel.DeclField{
		"name":   apiservercel.NewDeclField("name", apiservercel.StringType, true, nil, nil),
		"labels": apiservercel.NewDeclField("labels", apiservercel.NewMapType(apiservercel.StringType, apiservercel.StringType, -1), true, nil, nil),
	})
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(
		environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions: []cel.EnvOption{
				cel.Variable(plugin.ObjectVarName, cel.DynType),
				cel.Variable(plugin.OldObjectVarName, cel.DynType),
				cel.Variable(plugin.RequestVarName, request.CelType()),
				cel.Variable(clusterVariable, cluster.CelType()),
			},
			DeclTypes: []*apiservercel.DeclType{request, cluster},
		},
		environment.StrictCostOpt,
	)
	if err != nil {
		return nil, fmt.Errorf("build the CEL environment: %w", err)
	}
	return set.Env(environment.StoredExpressions)
}

// Compile compiles one expression, which must be a bool. Its error says what is
// wrong with the expression and where in it.
func (c *Compiler) Compile(expression string) (*Condition, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if done, ok := c.cached[expression]; ok {
		return done.condition, done.err
	}
	if len(c.cached) >= maxCached {
		clear(c.cached)
	}
	condition, err := c.compile(expression)
	c.cached[expression] = compiled{condition, err}
	return condition, err
}

func (c *Compiler) compile(expression string) (*Condition, error) {
	ast, issues := c.env.Compile(expression)
	if issues.Err() != nil {
		message := "compilation failed: " + issues.String()
		if strings.Contains(message, "undeclared reference to '"+authorizerVariable+"'") {
			message = "the variable authorizer is not supported: the dispatcher cannot ask a cluster's authorizer. " + message
		}
		return nil, fmt.Errorf("%s", message)
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("must evaluate to bool but got %v", ast.OutputType())
	}
	program, err := c.env.Program(ast, cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		return nil, fmt.Errorf("program instantiation failed: %w", err)
	}
	return &Condition{program: program}, nil
}
