// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
)

// request is what plugins are asked about, and what their cluster has.
type request struct {
	hook.Caller // for what is not asked
	sample.Request

	plugin string
	rights uint64          // what the authorizer's answers are drawn by
	again  json.RawMessage // the object as it has been mutated; nil: as it was drawn
}

// asked is the object that plugins are asked about.
func (q *request) asked() any {
	if q.again != nil {
		return q.again
	}
	return q.Object
}

// Objects implements hook.Caller: of each kind there are those that are stored.
func (q *request) Objects(r schema.GroupVersionResource) hook.Objects {
	var list objects
	for _, o := range q.Stored {
		raw, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		u := unstructured.Unstructured{}
		if err := json.Unmarshal(raw, &u.Object); err != nil {
			panic(err)
		}
		if resources[u.GetKind()] == r.Resource {
			list = append(list, &hook.Stored{Namespace: u.GetNamespace(), Name: u.GetName(), Labels: u.GetLabels(), JSON: raw})
		}
	}
	slices.SortFunc(list, func(a, b *hook.Stored) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

var resources = map[string]string{
	"Namespace": "namespaces", "LimitRange": "limitranges", "StorageClass": "storageclasses",
	"IngressClass": "ingressclasses", "PriorityClass": "priorityclasses", "RuntimeClass": "runtimeclasses",
}

// objects implements hook.Objects.
type objects []*hook.Stored

func (o objects) Get(namespace, name string, _ time.Time) (*hook.Stored, error) {
	for _, s := range o {
		if s.Namespace == namespace && s.Name == name {
			return s, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

func (o objects) List(namespace string, _ time.Time) (list []*hook.Stored, err error) {
	for _, s := range o {
		if namespace == "" || s.Namespace == namespace {
			list = append(list, s)
		}
	}
	return list, nil
}

// ours are our plugins.
type ours struct {
	workers *hook.Workers
	plugins []plugin.Plugin
}

func newOurs(t *testing.T) *ours {
	o := &ours{hook.NewWorkers(1), kubernetes.Plugins()}
	t.Cleanup(o.workers.Close)
	return o
}

// configured is the plugin of a request.
func (o *ours) configured(t *testing.T, q *request) *plugin.Instance {
	t.Helper()
	i := slices.IndexFunc(o.plugins, func(p plugin.Plugin) bool { return p.Name == q.plugin })
	if i < 0 {
		t.Fatalf("there is no %s", q.plugin)
	}
	var raw []byte
	if q.Configuration != "" {
		var err error
		if raw, err = yaml.YAMLToJSON([]byte(q.Configuration)); err != nil {
			t.Fatal(err)
		}
	}
	made, invalid, undecodable := o.plugins[i].Configure(raw, o.workers)
	if made == nil {
		t.Fatal(q.Configuration, invalid, undecodable)
	}
	return made
}

// answer is a plugin's.
type answer struct {
	codec.Response
	err error
}

type answers chan answer

// Answered implements hook.Asker.
func (a answers) Answered(_ uint64, resp codec.Response, err error) { a <- answer{resp, err} }

// ask asks our plugin in one phase, and returns the object as that leaves it.
func (q *request) ask(t *testing.T, p *plugin.Instance, mutating bool, object, old json.RawMessage) (answer, json.RawMessage) {
	t.Helper()
	review := &admissionv1.AdmissionRequest{
		UID: "u-1", Kind: metav1.GroupVersionKind{Group: q.Resource.Group, Version: q.Resource.Version, Kind: q.Kind},
		Resource: metav1.GroupVersionResource(q.Resource), SubResource: q.Subresource, Name: q.Name, Namespace: q.Namespace, Operation: q.Operation,
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}
	review.UserInfo.Username = "ann"
	text, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: review})
	if err != nil {
		t.Fatal(err)
	}
	body, r := codec.NewBody(text, nil), codec.AcquireReview()
	defer body.Release()
	defer codec.ReleaseReview(r)
	if err := r.Decode(body); err != nil {
		t.Fatal(err)
	}
	v := hook.NewView(hook.Source{Review: r, Cluster: "east", Mutating: mutating, Caller: q})
	defer v.Release()
	to := make(answers, 1)
	p.Ask(t.Context(), hook.Question{View: v, Deadline: time.Now().Add(time.Minute)}, hook.NewReceiver(to, 0))
	got := <-to
	if got.Patch == nil {
		return got, object
	}
	patch, err := jsonpatch.DecodePatch(got.Patch)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := patch.Apply(object)
	if err != nil {
		t.Fatalf("%s does not apply to %s: %v", got.Patch, object, err)
	}
	return got, changed
}
