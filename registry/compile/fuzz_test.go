// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// FuzzCompile feeds manifests to everything that reads them, beside a Cluster: policies that
// validate and that mutate, their bindings and params, plugins and AdmissionConfigurations.
// What comes of them is the same twice, and every problem is fit to be shown.
func FuzzCompile(f *testing.F) {
	paths, err := filepath.Glob("testdata/[HJKO]*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatal("no stories", err)
	}
	for _, path := range paths {
		story, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range story.Files {
			if ext := filepath.Ext(file.Name); ext == ".yaml" || ext == ".json" {
				f.Add(file.Data)
			}
		}
	}
	c := compilersOf(f)
	fuzz.Run(f, func(t testing.TB, data []byte) {
		first, again := c.compiled("fuzz.yaml", data), c.compiled("fuzz.yaml", data)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("the same manifest comes to two things:\n%s", diff)
		}
		for _, p := range slices.Concat(first.Problems, first.Warnings) {
			fitToShow(t, p)
		}
		if asJSON, err := yaml.YAMLToJSON(data); err == nil && len(first.Problems) == 0 && !bytes.Contains(data, []byte("---")) {
			if diff := cmp.Diff(first.Entries, c.compiled("fuzz.json", asJSON).Entries); diff != "" {
				t.Errorf("as JSON, %s, it comes to something else:\n%s", asJSON, diff)
			}
		}
	})
}

// outcome is what comes of a manifest.
type outcome struct {
	Problems, Warnings []manifest.Problem
	Entries            []string // the chain of the Cluster
}

// one is a Source of a manifest beside a Cluster.
type one struct{ manifest.File }

// Name implements manifest.Source.
func (one) Name() string { return "fuzz" }

// Read implements manifest.Source.
func (o one) Read(context.Context) []manifest.File {
	return []manifest.File{{Name: "cluster.yaml", Data: []byte(clusterYAML)}, o.File}
}

// compilers are Compilers, each with another past: to make one takes longer than to compile
// with it.
type compilers struct{ idle chan *compile.Compiler }

func compilersOf(t testing.TB) compilers {
	c := compilers{make(chan *compile.Compiler, 2*runtime.GOMAXPROCS(0))}
	options := compile.Options{Plugins: compiledIn(t)}
	for range cap(c.idle) {
		c.idle <- compile.NewCompiler(options)
	}
	return c
}

// compiled compiles a manifest.
func (c compilers) compiled(name string, data []byte) (came outcome) {
	reader := manifest.Reader{Sources: []manifest.Source{one{manifest.File{Name: name, Data: data}}}}
	compiler := <-c.idle
	made, problems, warnings := compiler.Compile(reader.Read(context.Background()), nil, nil)
	c.idle <- compiler
	came.Problems, came.Warnings = problems, warnings
	if made == nil {
		return came
	}
	for _, name := range slices.Sorted(maps.Keys(made.Clusters)) {
		c := made.Clusters[name]
		for _, chain := range []*chain.Chain{c.Mutating, c.Validating} {
			for _, e := range chain.Webhooks {
				came.Entries = append(came.Entries, fmt.Sprint(name, e.ID, e.PathID, e.Stage, e.Mode, e.Order, e.FailurePolicy, e.Timeout, e.Needs))
			}
		}
	}
	return came
}

// The bounds of what a problem shows, in bytes.
const (
	shownValue = 80 + len("...")
	shownText  = 2<<10 + len("...")
)

// fitToShow fails the test if a problem does not say where it is, or says too much.
func fitToShow(t testing.TB, p manifest.Problem) {
	t.Helper()
	switch {
	case p.Reason == "":
		t.Errorf("%+v has no reason", p)
	case p.File == "" && p.Object == "" && p.Reason != "there is no Cluster: nobody may call":
		t.Errorf("%+v is nowhere", p)
	case len(p.Value) > shownValue:
		t.Errorf("a value of %d bytes is shown of %s", len(p.Value), p.Field)
	case len(p.Reason) > shownText, len(p.Field) > shownText, len(p.Object) > shownText:
		t.Errorf("the reason has %d bytes, the path %d, the object %d: %.200s", len(p.Reason), len(p.Field), len(p.Object), p)
	case strings.ContainsFunc(p.String(), unicode.IsControl):
		t.Errorf("%q is more than a line of text", p)
	}
}

// configurations are seeds of FuzzPlugin, by the plugin.
var configurations = map[string][]string{
	"EventRateLimit": {
		`{"apiVersion":"eventratelimit.admission.k8s.io/v1alpha1","kind":"Configuration","limits":[{"type":"Server","qps":50,"burst":100},{"type":"User","qps":1,"burst":1,"cacheSize":10}]}`,
		`{"limits":[{"type":"Namespace","qps":0,"burst":-1},{"type":"SourceAndObject","qps":2147483648}]}`,
	},
	"ExternalIPRanger": {
		`{"apiVersion":"v1","kind":"ExternalIPRangerAdmissionConfig","externalIPNetworkCIDRs":["10.0.0.0/8","!10.1.0.0/16","::/0"],"allowIngressIP":true}`,
		`{"externalIPNetworkCIDRs":["10","!","1.2.3.4/33"]}`,
	},
	"FieldRestriction": {
		`{"restrictions":[{"name":"a","exempt":{"users":["u"],"groups":["g"]},"labels":{"denied":["a*"],"allowed":["ab"]},"annotations":{},"taints":[{"key":"k","value":"v","effect":"NoSchedule"}],` +
			`"fields":[{"path":"spec.a[\"b.c\"].*","values":[1,null,"x",[2],{"y":1.5}]}]}]}`,
		`{"restrictions":[{"name":"","labels":{"denied":["*a",""]},"taints":[{"key":"","effect":"No"}],"fields":[{"path":"a..b"},{"path":"["}]}]}`,
	},
	"OwnerReferencesPermissionEnforcement": {
		`{"kinds":[{"group":"g.io","kind":"K","plural":"ks","scope":"Namespaced"},{"group":"g.io","kind":"L","plural":"ls","scope":"Cluster"}]}`,
		`{"kinds":[{"group":"","kind":"Pod","plural":"p/q","scope":"Some"},{"group":"G","kind":"","plural":"","scope":""}]}`,
	},
	"PodNodeConstraints": {`{"apiVersion":"v1","kind":"PodNodeConstraintsConfig","nodeSelectorLabelBlacklist":["kubernetes.io/hostname","a b",""]}`},
	"PodNodeSelector":    {`{"podNodeSelectorPluginConfig":{"clusterDefaultNodeSelector":"a=b,c=d","shop":"a=b","bad":"a in (b)","worse":"a b=c"}}`},
	"PodSecurity": {
		`{"apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration","defaults":{"enforce":"baseline","enforce-version":"v1.30","audit":"restricted","warn":"privileged"},` +
			`"exemptions":{"usernames":["ann",""],"namespaces":["a","A"],"runtimeClasses":["kata","kata"]}}`,
		`{"defaults":{"enforce":"strict","warn-version":"1.30"}}`,
	},
	"PodTolerationRestriction": {
		`{"apiVersion":"podtolerationrestriction.admission.k8s.io/v1alpha1","kind":"Configuration","default":[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}],"whitelist":[{"key":"a","value":"b"}]}`,
		`{"default":[{"key":"a b","operator":"In"},{"operator":"Equal","value":"x y","effect":"No"}]}`,
	},
	"ClusterResourceOverride":  {`{"apiVersion":"v1","kind":"ClusterResourceOverrideConfig","limitCPUToMemoryPercent":200,"cpuRequestToLimitPercent":25,"memoryRequestToLimitPercent":101}`},
	"RunOnceDuration":          {`{"apiVersion":"v1","kind":"RunOnceDurationConfig","activeDeadlineSecondsOverride":3600}`, `{"activeDeadlineSecondsOverride":-1}`},
	"DefaultTolerationSeconds": {`{"notReadyTolerationSeconds":5,"unreachableTolerationSeconds":-9223372036854775808}`},
}

// FuzzPlugin gives configurations to the plugins that are shipped. One that a plugin takes it
// takes again in whatever order its members are, and says the same of twice. Of one that it
// refuses, each problem lies below the configuration.
func FuzzPlugin(f *testing.F) {
	for i, p := range kubernetes.Plugins() {
		for _, seed := range append([]string{"{}", "[]", `{"apiVersion":"v1","kind":"K"}`}, configurations[p.Name]...) {
			f.Add(byte(i), []byte(seed))
		}
	}
	c, names := compilersOf(f), kubernetes.Plugins()
	fuzz.Run(f, func(t testing.TB, which byte, configuration []byte) {
		name := names[int(which)%len(names)].Name
		first := c.configured(name, configuration)
		if !json.Valid(configuration) || slices.ContainsFunc(first, func(p manifest.Problem) bool { return p.Object == "" }) {
			return // there is no object that has it
		}
		if again := c.configured(name, configuration); !slices.Equal(first, again) {
			t.Errorf("%s comes to two things: %v, %v", name, first, again)
		}
		for _, p := range first {
			fitToShow(t, p)
			if p.Field != "spec.configuration" && !strings.HasPrefix(p.Field, "spec.configuration.") && !strings.HasPrefix(p.Field, "spec.configuration[") {
				t.Errorf("%s: %+v is not in the configuration", name, p)
			}
		}
		if len(first) == 0 {
			var read any
			numbers := json.NewDecoder(bytes.NewReader(configuration))
			numbers.UseNumber()
			if err := numbers.Decode(&read); err != nil {
				t.Fatalf("%s takes %s: %v", name, configuration, err)
			}
			sorted, err := json.Marshal(read)
			if err != nil {
				t.Fatal(err)
			}
			if problems := c.configured(name, sorted); len(problems) > 0 {
				t.Errorf("%s takes %s, but not %s: %v", name, configuration, sorted, problems)
			}
		}
	})
}

// configured returns what is wrong with an object Plugin of this configuration.
func (c compilers) configured(name string, configuration []byte) (problems []manifest.Problem) {
	object := fmt.Sprintf(`{"apiVersion":"dispatcher.dev/v1alpha1","kind":"Plugin","metadata":{"name":"p"},"spec":{"plugin":%q,"clusterSelector":{"matchLabels":{"no":"cluster"}},"configuration":%s}}`, name, configuration)
	return c.compiled("fuzz.json", []byte(object)).Problems
}
