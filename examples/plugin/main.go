// SPDX-License-Identifier: Apache-2.0

// This is a dispatcher with one more plugin: what is created must say who owns it. An
// object Plugin turns it on:
//
//	apiVersion: dispatcher.dev/v1alpha1
//	kind: Plugin
//	metadata: {name: owners}
//	spec: {plugin: RequireOwner, configuration: {label: owner}}
package main

import (
	"context"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/command"
	"github.com/admission-dispatcher/dispatcher/plugin"
)

func main() {
	os.Exit(command.Run(options(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func options() command.Options {
	rules := []admissionregistrationv1.RuleWithOperations{plugin.Rule("apps", "v1", []string{"deployments"}, "CREATE")}
	return command.Options{Version: "example", Plugins: []plugin.Plugin{plugin.New("RequireOwner", rules, configure)}}
}

// requireOwner is the plugin, and its configuration.
type requireOwner struct {
	Label string `json:"label"` // that has the owner
}

func configure(r *requireOwner) (any, field.ErrorList) {
	if r.Label == "" {
		return nil, field.ErrorList{field.Required(field.NewPath("label"), "the label that has the owner")}
	}
	return r, nil
}

func (r *requireOwner) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	object, err := plugin.Decode[metav1.PartialObjectMetadata](a.Object())
	if err != nil || object.Labels[r.Label] != "" {
		return plugin.Answer{}, err
	}
	return a.Forbid("it needs the label %q", r.Label), nil
}
