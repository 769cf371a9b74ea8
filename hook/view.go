// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// View is one generation of one review: the review as it was received, the object as
// mutated so far, the forms in which it is sent and the variables of conditions, each
// made once for all. It is reference-counted: whoever uses it after its own frame
// retains it first. What it has does not change, and is safe for concurrent use.
type View struct {
	generation
	refs atomic.Int32
	mu   sync.Mutex // guards forms, resource, now and always
}

// generation is what a View has. It is replaced whole, so that nothing of one review is
// left for the next.
type generation struct {
	Source
	// Object is the object as mutated so far; &Review.Object as received.
	Object *codec.Object
	// UID is that of the round, which Hooks are asked under in place of the Review's.
	UID        []byte
	Generation int // how often the object was mutated

	variables celenv.Variables
	// What follows is made when first asked for.
	forms    codec.Forms
	resource string
	// now is what was made of this generation, always what was made of the review.
	now, always *memo
}

// Source is what all Views of one review have in common.
type Source struct {
	Review        *codec.Review
	Cluster       string
	ClusterLabels map[string]string // read only
	Caller        Caller            // nil: nothing is known of it
	Mutating      bool              // the phase; otherwise validating
	// Account counts the memory of the forms and gives the turns to make them; nil:
	// that is not limited.
	Account Account
	Until   time.Time // how long to wait for a turn
	// Transcoder makes the objects of Hooks that take them as native protobuf; nil:
	// none gets that.
	Transcoder codec.Transcoder
}

// Account shares out memory and processor time among clusters. It is safe for
// concurrent use.
type Account interface {
	// Turn waits until the given time for the cluster's turn to work on so many bytes.
	// Without an error done must be called after the work.
	Turn(cluster string, size int, until time.Time) (done func(), err error)
	// Hold has the bytes of body counted as the cluster's until the last reference to
	// it is gone. admitted: they are for an admission that has a slot. The error says
	// that there is no room for them.
	Hold(cluster string, body *codec.Body, admitted bool) error
	// LookUp takes one of the lookups in clusters that may be under way until done.
	LookUp(cluster string) (done func(), err error)
}

var views = sync.Pool{New: func() any { return new(View) }}

// NewView returns the View of a review as it was received, with one reference. The
// Review is retained.
func NewView(s Source) *View {
	v := newView(s)
	v.Object, v.UID = &s.Review.Object, s.Review.UID
	v.variables.Input = celenv.Input{Review: s.Review, Object: v.Object, ClusterName: s.Cluster, ClusterLabels: s.ClusterLabels}
	return v
}

func newView(s Source) *View {
	v := views.Get().(*View)
	v.Source = s
	v.forms.Review, v.forms.Transcoder = s.Review, s.Transcoder
	s.Review.Retain()
	v.refs.Store(1)
	return v
}

// Mutated returns the next generation, with another object, which must never be
// written again. The caller's reference to v becomes one to what is returned.
func (v *View) Mutated(object *codec.Object) *View {
	n := v.next()
	n.Generation++
	n.now = nil
	n.Object, n.forms.Object = object, object.Raw
	n.variables.SetObject(object)
	return n
}

// Renewed returns v with another uid, which must never be written again. The caller's
// reference to v becomes one to what is returned.
func (v *View) Renewed(uid []byte) *View {
	n := v.next()
	n.UID, n.forms.UID = uid, uid
	return n
}

// next returns what v is without its forms, to be changed: v itself where nobody else
// has a reference.
func (v *View) next() *View {
	if v.refs.Load() == 1 {
		v.forms.Release()
		return v
	}
	n := newView(v.Source)
	n.Object, n.UID, n.Generation, n.resource = v.Object, v.UID, v.Generation, v.Resource()
	n.forms.Object, n.forms.UID = v.forms.Object, v.forms.UID
	n.variables.Inherit(&v.variables)
	n.now, n.always = v.memos()
	v.Release()
	return n
}

// Retain adds a reference and returns v.
func (v *View) Retain() *View {
	if v.refs.Add(1) <= 1 {
		panic("hook: View retained after its last release")
	}
	return v
}

// Release drops one reference. The last one gives back the forms and the Review.
func (v *View) Release() {
	switch n := v.refs.Add(-1); {
	case n > 0:
		return
	case n < 0:
		panic("hook: View released more often than retained")
	}
	v.forms.Release()
	codec.ReleaseReview(v.Review)
	v.generation = generation{}
	views.Put(v)
}

// Variables are what conditions see of the review.
func (v *View) Variables() *celenv.Variables { return &v.variables }

// Resource is what the review is about, such as "apps/deployments".
func (v *View) Resource() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.resource == "" {
		v.resource = resourceName(&v.Review.Resource)
	}
	return v.resource
}

// resourceName is the group and the name of a resource. It allocates for those only that
// Kubernetes does not bring along.
func resourceName(r *codec.GroupVersionResource) string {
	var buf [64]byte
	name := append(append(append(buf[:0], r.Group...), '/'), r.Resource...)
	if known, ok := builtIn[string(name)]; ok {
		return known
	}
	return string(name)
}

// builtIn are the names of the resources of Kubernetes that admission is asked about most.
var builtIn = func() map[string]string {
	names := map[string]string{}
	for group, resources := range map[string]string{
		"":                          "pods services endpoints configmaps secrets events serviceaccounts namespaces nodes persistentvolumes persistentvolumeclaims resourcequotas limitranges replicationcontrollers bindings",
		"apps":                      "deployments replicasets statefulsets daemonsets controllerrevisions",
		"batch":                     "jobs cronjobs",
		"autoscaling":               "horizontalpodautoscalers",
		"coordination.k8s.io":       "leases",
		"discovery.k8s.io":          "endpointslices",
		"events.k8s.io":             "events",
		"networking.k8s.io":         "ingresses networkpolicies ingressclasses",
		"policy":                    "poddisruptionbudgets",
		"rbac.authorization.k8s.io": "roles rolebindings clusterroles clusterrolebindings",
		"apiextensions.k8s.io":      "customresourcedefinitions",
		"storage.k8s.io":            "storageclasses volumeattachments csinodes csidrivers csistoragecapacities",
	} {
		for resource := range strings.FieldsSeq(resources) {
			name := group + "/" + resource
			names[name] = name
		}
	}
	return names
}()

// Turn waits for the cluster's turn to work on so many bytes of the review. Without an
// error done must be called after the work.
func (v *View) Turn(size int) (done func(), err error) {
	if v.Account == nil {
		return func() {}, nil
	}
	return v.Account.Turn(v.Cluster, size, v.Until)
}

// payload returns the review in a form. Making one of a large object takes the
// cluster's turn, for which nobody else waits: the lock is not held meanwhile.
func (v *View) payload(f codec.Form, admitted bool) (*codec.Body, error) {
	if body := v.find(f); body != nil {
		return body, nil
	}
	if f.Coding != codec.Identity { // made of what is not compressed, which counts too
		if _, err := v.payload(codec.Form{Version: f.Version, Encoding: f.Encoding}, admitted); err != nil {
			return nil, err
		}
	}
	size := v.Review.Body.Len() + len(v.forms.Object)
	if f.Encoding == codec.JSON && f.Coding == codec.Identity {
		size = 0 // copied, which takes as long as to send it
	}
	done, err := v.Turn(size)
	if err != nil {
		return nil, &CallError{Cause: Shed, Err: err}
	}
	defer done()
	v.mu.Lock()
	defer v.mu.Unlock()
	body := v.forms.Get(f)
	if v.Account == nil {
		return body, nil
	}
	if err := v.Account.Hold(v.Cluster, body, admitted); err != nil {
		return nil, &CallError{Cause: Shed, Err: err}
	}
	return body, nil
}

// find returns the form if it is there and counted.
func (v *View) find(f codec.Form) *codec.Body {
	v.mu.Lock()
	defer v.mu.Unlock()
	body := v.forms.Find(f)
	if body == nil || body == v.Review.Body || body.Charged() || v.Account == nil {
		return body
	}
	return nil
}
