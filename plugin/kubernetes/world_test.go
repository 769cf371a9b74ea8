// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is one that a plugin is asked about. Zero values mean the creation of a pod by
// ann in the namespace shop.
type request struct {
	operation, resource, subresource, namespace, name, user string
	object, old                                             string // in YAML
	dryRun                                                  bool
	kind                                                    string
	cluster                                                 string
	groups                                                  []string
	caller                                                  hook.Caller
}

func (q request) review(t *testing.T) []byte {
	t.Helper()
	object := func(text string) string {
		out, err := yaml.YAMLToJSON([]byte(cmp.Or(text, "null")))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	group, resource, _ := cutLast(cmp.Or(q.resource, "pods"))
	groups, err := json.Marshal(q.groups)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":%[1]q,"version":"v1","kind":%[11]q},`+
		`"resource":{"group":%[1]q,"version":"v1","resource":%[2]q},"subResource":%[3]q,"name":%[4]q,"namespace":%[5]q,"operation":%[6]q,`+
		`"userInfo":{"username":%[7]q,"groups":%[12]s,"extra":{"scopes":["read","write"]}},"dryRun":%[8]t,"object":%[9]s,"oldObject":%[10]s}}`,
		group, resource, q.subresource, cmp.Or(q.name, "web"), cmp.Or(q.namespace, "shop"), cmp.Or(q.operation, "CREATE"), cmp.Or(q.user, "ann"),
		q.dryRun, object(q.object), object(q.old), cmp.Or(q.kind, "Pod"), groups)
}

// cutLast divides group/resource, of which the core group is left out.
func cutLast(s string) (group, resource string, ok bool) {
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return "", s, false
}

// asked is a plugin with a configuration.
type asked struct {
	t *testing.T
	*plugin.Instance
}

// configured returns a plugin with a configuration in YAML.
func configured(t *testing.T, name, configuration string) asked {
	t.Helper()
	made, problems := configure(t, name, configuration)
	if made == nil {
		t.Fatal(problems)
	}
	return asked{t, made}
}

// configure returns the plugin, or what is wrong with the configuration, a line each.
func configure(t *testing.T, name, configuration string) (made *plugin.Instance, problems string) {
	t.Helper()
	all := kubernetes.Plugins()
	i := slices.IndexFunc(all, func(p plugin.Plugin) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	w := hook.NewWorkers(1)
	t.Cleanup(w.Close)
	raw, err := yaml.YAMLToJSON([]byte(configuration))
	if err != nil {
		t.Fatal(err)
	}
	if configuration == "" {
		raw = nil
	}
	made, invalid, undecodable := all[i].Configure(raw, w)
	var lines []string
	for _, e := range invalid {
		lines = append(lines, e.Error())
	}
	for _, e := range undecodable {
		lines = append(lines, e.Error())
	}
	return made, strings.Join(lines, "\n")
}

// answer is what a plugin has answered.
type answer struct {
	codec.Response
	err    error
	object string // in JSON, with the patch applied
}

// String is "allowed", or the code and the message of a denial.
func (a answer) String() string {
	switch {
	case a.err != nil:
		return "error: " + a.err.Error()
	case a.Allowed:
		return "allowed"
	}
	return fmt.Sprint(a.Code, " ", a.Message)
}

// Answered implements hook.Asker.
func (a answers) Answered(_ uint64, resp codec.Response, err error) {
	a <- answer{Response: resp, err: err}
}

type answers chan answer

func (p asked) mutate(q request) answer   { p.t.Helper(); return p.ask(q, true) }
func (p asked) validate(q request) answer { p.t.Helper(); return p.ask(q, false) }

func (p asked) ask(q request, mutating bool) answer {
	p.t.Helper()
	body, r := codec.NewBody(q.review(p.t), nil), codec.AcquireReview()
	defer body.Release()
	defer codec.ReleaseReview(r)
	if err := r.Decode(body); err != nil {
		p.t.Fatal(err)
	}
	v := hook.NewView(hook.Source{Review: r, Cluster: cmp.Or(q.cluster, "east"), Caller: q.caller, Mutating: mutating})
	defer v.Release()
	to := make(answers, 1)
	p.Ask(p.t.Context(), hook.Question{View: v, Deadline: time.Now().Add(time.Minute)}, hook.NewReceiver(to, 0))
	got := <-to
	got.object = string(r.Object.Raw)
	if got.Patch != nil {
		patch, err := jsonpatch.DecodePatch(got.Patch)
		if err != nil {
			p.t.Fatal(err)
		}
		changed, err := patch.Apply(r.Object.Raw)
		if err != nil {
			p.t.Fatalf("%s: %v", got.Patch, err)
		}
		got.object = string(changed)
	}
	return got
}

// is fails the test unless the object is, with all patches, what the YAML says.
func (a answer) is(t *testing.T, want string) {
	t.Helper()
	if a.err != nil || !a.Allowed {
		t.Errorf("it is %s", a)
		return
	}
	var got, wanted any
	if err := json.Unmarshal([]byte(a.object), &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	x, _ := json.Marshal(got)
	y, _ := json.Marshal(wanted)
	if string(x) != string(y) {
		t.Errorf("the object is\n%s\nwant\n%s", x, y)
	}
}

// says fails the test unless the plugin says that.
func (a answer) says(t *testing.T, want string) {
	t.Helper()
	if a.String() != want {
		t.Errorf("it says\n%s\nwant\n%s", a, want)
	}
}
