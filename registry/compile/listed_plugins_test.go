// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// K22 What an AdmissionConfiguration lists takes part as an object Plugin of that plugin
// does, with the configuration that stands there or in a file.
func TestK22ListedPluginsAreObjects(t *testing.T) {
	const listed = `
-- admission.yaml --
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- {name: Limited, configuration: {limits: [{qps: 1}]}}
- {name: DefaultTolerationSeconds, path: seconds.conf}
- {name: AlwaysPullImages}
-- seconds.conf --
{notReadyTolerationSeconds: 5}
`
	const objects = `
-- plugins.yaml --
{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: limited}, spec: {plugin: Limited, configuration: {limits: [{qps: 1}]}}}
---
{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: defaulttolerationseconds}, spec: {plugin: DefaultTolerationSeconds, configuration: {notReadyTolerationSeconds: 5}}}
---
{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: alwayspullimages}, spec: {plugin: AlwaysPullImages}}
`
	var said [2][]string
	for i, files := range []string{listed, objects} {
		h := newHome(t)
		h.write(txtar.Parse([]byte(files)).Files)
		compiled := h.good(compile.Options{Plugins: compiledIn(t)})
		for _, phase := range []chain.Phase{chain.Mutating, chain.Validating} {
			for _, e := range compiled.Clusters["dev"].Chain(phase).Webhooks {
				said[i] = append(said[i], cmp.Diff(nil, []any{
					phase.String(), e.ID, e.Noun, e.PathID, e.Spec, e.FailurePolicy, e.Timeout, e.Mode, e.Stage, e.Order, e.Reinvocation, e.Needs, e.SideEffects,
				}))
			}
		}
	}
	if diff := cmp.Diff(said[1], said[0]); diff != "" || len(said[0]) < 4 {
		t.Errorf("as objects (-) and as they are listed (+):\n%s", diff)
	}
}

// K22 The file that has a configuration is part of what is compared at each look, and is
// read from where a manifest's files may lie.
func TestK22ConfigurationInAFile(t *testing.T) {
	h := newHome(t)
	h.put("admission.yaml", "{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: Limited, path: limits.conf, configuration: null}]}")
	h.put("limits.conf", "{limits: [{qps: 1}]}")
	reader := manifest.Reader{Sources: manifest.Directories(h.dir)}
	compiler := compile.NewCompiler(compile.Options{Plugins: compiledIn(t)})
	first := reader.Read(t.Context())
	if _, problems, _ := compiler.Compile(first, nil, nil); len(problems) > 0 {
		t.Fatal(problems)
	}
	h.put("limits.conf", "{limits: [{qps: 0}]}")
	second := reader.Read(t.Context())
	if first.Hash == second.Hash {
		t.Error("a change of the file is none")
	}
	_, problems, _ := compiler.Compile(second, nil, nil)
	if got, want := lines(h.dir, problems), "limits.conf: Limited: limits[0].qps: \"0\": Invalid value: must be positive\n"; got != want {
		t.Errorf("it says %q", got)
	}
}

// K22 A manifest that lies in no directory has its configurations itself.
func TestK22ConfigurationWithoutADirectory(t *testing.T) {
	h := newHome(t)
	h.put("limits.conf", "{limits: [{qps: 1}]}")
	for path, want := range map[string]string{
		"limits.conf":          "it: AdmissionConfiguration: plugins[0].path: \"limits.conf\": cannot be read: its manifest lies in no directory that it could be relative to: write what it has in configuration\n",
		h.dir + "/limits.conf": "",
	} {
		reader := manifest.Reader{FileRoots: []string{h.dir}, Sources: []manifest.Source{manifest.Directory(h.dir), nowhere(
			"{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: Limited, path: " + path + "}]}",
		)}}
		_, problems, _ := compile.NewCompiler(compile.Options{Plugins: compiledIn(t)}).Compile(reader.Read(t.Context()), nil, nil)
		if got := strings.Replace(lines(h.dir, problems), h.dir, "", 1); got != want {
			t.Errorf("%s: it says %q", path, got)
		}
	}
}

// nowhere is a Source with one manifest that lies in no directory.
type nowhere string

func (nowhere) Name() string { return "nowhere" }

func (s nowhere) Read(context.Context) []manifest.File {
	return []manifest.File{{Name: "it", Data: []byte(s)}}
}
