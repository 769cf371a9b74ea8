// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// Params finds the params of one binding: the objects of its policy's paramKind that its
// paramRef selects, for a review. It is frozen, and safe for concurrent use.
type Params struct {
	kind       admissionregistrationv1.ParamKind
	resource   schema.GroupVersionResource
	namespaced bool
	ref        admissionregistrationv1.ParamRef
	selector   labels.Selector // nil: by name
	registry   *RegistryParams // nil: the calling cluster's own count
	sum        string          // over all that it says, and the registry's objects
}

// ParamResource is what a paramKind stands for.
type ParamResource struct {
	Kind       admissionregistrationv1.ParamKind
	Resource   schema.GroupVersionResource
	Namespaced bool
}

// RegistryParams are the objects of one paramKind that stand in the sources.
type RegistryParams struct {
	every ParamList            // for clusters that have none of their own
	own   map[string]ParamList // by cluster: with its own in place of those for all
	sum   string
}

// NewRegistryParams returns the params for every cluster, and those that are one cluster's
// own, in place of one for every cluster that has the name.
func NewRegistryParams(every []*hook.Stored, own map[string][]*hook.Stored) *RegistryParams {
	r := &RegistryParams{every: sorted(every), own: map[string]ParamList{}}
	sum := sha256.New()
	r.every.addTo(sum, "")
	for _, cluster := range slices.Sorted(maps.Keys(own)) {
		list := own[cluster]
		mine := sorted(list)
		mine.addTo(sum, cluster)
		for _, p := range r.every {
			if _, replaced := mine.find(p.Namespace, p.Name); !replaced {
				list = append(list, p)
			}
		}
		r.own[cluster] = sorted(list)
	}
	r.sum = hex.EncodeToString(sum.Sum(nil))
	return r
}

// addTo adds the list of a cluster to a sum.
func (l ParamList) addTo(sum hash.Hash, cluster string) {
	for _, s := range l {
		fmt.Fprintf(sum, "%q %q %q %q\n", cluster, s.Namespace, s.Name, s.JSON)
	}
}

func (r *RegistryParams) of(cluster string) ParamList {
	if list, ok := r.own[cluster]; ok {
		return list
	}
	return r.every
}

// ParamList is objects in the order of their namespaces and names.
type ParamList []*hook.Stored

var _ hook.KnownObjects = ParamList(nil)

func sorted(list []*hook.Stored) ParamList {
	return slices.SortedFunc(slices.Values(list), func(a, b *hook.Stored) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func (l ParamList) find(namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(l, name, func(s *hook.Stored, name string) int {
		return cmp.Or(cmp.Compare(s.Namespace, namespace), cmp.Compare(s.Name, name))
	})
}

// Get implements hook.Objects.
func (l ParamList) Get(namespace, name string, _ time.Time) (*hook.Stored, error) {
	return l.Known(namespace, name)
}

// Known implements hook.KnownObjects: all of them are known.
func (l ParamList) Known(namespace, name string) (*hook.Stored, error) {
	if i, ok := l.find(namespace, name); ok {
		return l[i], nil
	}
	return nil, nil
}

// List implements hook.Objects.
func (l ParamList) List(namespace string, _ time.Time) ([]*hook.Stored, error) {
	return l.KnownList(namespace)
}

// KnownList implements hook.KnownObjects.
func (l ParamList) KnownList(namespace string) ([]*hook.Stored, error) {
	if namespace == "" {
		return slices.Clone(l), nil
	}
	begin, _ := l.find(namespace, "")
	end, _ := l.find(namespace+"\x00", "")
	return slices.Clone(l[begin:end]), nil
}

// NewParams returns what finds the params of a valid paramRef. registry, if it is not nil,
// has them, or else the calling cluster. The error is kube-apiserver's to a request.
func NewParams(of ParamResource, ref *admissionregistrationv1.ParamRef, registry *RegistryParams) (*Params, error) {
	p := &Params{kind: of.Kind, resource: of.Resource, namespaced: of.Namespaced, ref: *ref, registry: registry}
	if ref.Namespace != "" && !of.Namespaced {
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	}
	if ref.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
		if err != nil {
			return nil, err
		}
		p.selector = selector
	}
	text, _ := json.Marshal(struct { // plain data always has a text
		ParamResource
		Ref *admissionregistrationv1.ParamRef
	}{of, ref})
	if registry != nil {
		text = append(text, registry.sum...)
	}
	sum := sha256.Sum256(text)
	p.sum = hex.EncodeToString(sum[:])
	return p, nil
}

// Needed is the resource that the calling cluster must be asked for; ok is false where it
// is not asked.
func (p *Params) Needed() (resource schema.GroupVersionResource, ok bool) {
	if p == nil || p.registry != nil {
		return schema.GroupVersionResource{}, false
	}
	return p.resource, true
}

// Find returns the params for a review, in the order of their namespaces and names, each of
// which the policy is evaluated with. None without an error: the policy is not for the
// review. nil of p, and a nil Param, are null. An error is a *hook.CallError where too many
// wait for the cluster's API, or else one of configuration, in kube-apiserver's words, of which "failed to configure binding" is told (CollectParams in
// k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go).
func (p *Params) Find(q *hook.Question) ([]*Param, error) {
	if p == nil {
		return []*Param{nil}, nil
	}
	namespace := ""
	if p.namespaced {
		if namespace = cmp.Or(p.ref.Namespace, string(q.Review.Namespace)); namespace == "" {
			return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
		}
	}
	objects := p.objects(q.View)
	if objects == nil {
		return nil, fmt.Errorf("paramKind kind `%v` not known", p.kind.String())
	}
	stored, err := p.stored(q, objects, namespace)
	if shed, ok := errors.AsType[*hook.CallError](err); ok {
		return nil, shed
	}
	if err != nil {
		return nil, fmt.Errorf("paramKind kind `%v` not yet synced to use for admission: %w", p.kind.String(), err)
	}
	if len(stored) == 0 && *p.ref.ParameterNotFoundAction == admissionregistrationv1.DenyAction {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	params := make([]*Param, len(stored))
	for i, s := range stored {
		params[i] = paramOf(s)
	}
	return params, nil
}

// unknown reports whether nobody has the objects.
func (p *Params) unknown(v *hook.View) bool { return p != nil && p.objects(v) == nil }

func (p *Params) objects(v *hook.View) hook.Objects {
	switch {
	case p.registry != nil:
		return p.registry.of(v.Cluster)
	case v.Caller == nil:
		return nil
	}
	return v.Caller.Objects(p.resource)
}

// stored returns what the paramRef selects.
func (p *Params) stored(q *hook.Question, objects hook.Objects, namespace string) ([]*hook.Stored, error) {
	if p.selector == nil {
		found, err := q.Stored(objects, namespace, p.ref.Name)
		if found == nil {
			return nil, err
		}
		return []*hook.Stored{found}, err
	}
	list, err := q.StoredList(objects, namespace)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(s *hook.Stored) bool { return !p.selector.Matches(labels.Set(s.Labels)) }), nil
}

// Param is one version of an object, and the same one wherever it is found. It is frozen,
// and safe for concurrent use. nil is null.
type Param struct{ stored *hook.Stored }

type objectKey struct{}

// Object returns what expressions see; nil of nil. A version is decoded once, for all
// policies and admissions, by the first that asks: in the cluster's turn, as long as it is.
func (p *Param) Object() *celenv.Object {
	if p == nil {
		return nil
	}
	made, _ := p.stored.Once(objectKey{}, func() (any, error) { return celenv.NewParams(p.stored.JSON), nil }) // it does not fail
	object, _ := made.(*celenv.Object)
	return object
}

// Size is how long the object is, in bytes.
func (p *Param) Size() int {
	if p == nil {
		return 0
	}
	return len(p.stored.JSON)
}

func (p *Param) String() string {
	switch {
	case p == nil:
		return "null"
	case p.stored.Namespace == "":
		return p.stored.Name
	}
	return p.stored.Namespace + "/" + p.stored.Name
}

type paramKey struct{}

func paramOf(s *hook.Stored) *Param {
	made, _ := s.Once(paramKey{}, func() (any, error) { return &Param{s}, nil }) // it does not fail
	param, _ := made.(*Param)
	return param
}

// Kind names the paramKind and where its objects come from, for those who explain.
func (p *Params) Kind() string {
	if p.registry != nil {
		return p.kind.Kind + " of the registry"
	}
	return p.kind.Kind + " of the cluster"
}
