// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	gojson "encoding/json"
	"errors"
	"fmt"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/quantity"
)

// Attributes are one review as a plugin sees it. They, and the bytes of objects, are valid
// until Validate or Mutate returns; the strings are copies. They are read only.
type Attributes struct {
	question hook.Question
}

// Cluster is the name of the cluster that asks.
func (a *Attributes) Cluster() string { return a.question.Cluster }

// ClusterLabels are the labels of its object Cluster. They are read only.
func (a *Attributes) ClusterLabels() map[string]string { return a.question.ClusterLabels }

// Operation is what the user asked the API server to do.
func (a *Attributes) Operation() admissionv1.Operation {
	return admissionv1.Operation(a.question.Review.Operation.String())
}

// Kind is that of the object, as it was converted for the tier.
func (a *Attributes) Kind() schema.GroupVersionKind {
	k := &a.question.Review.Kind
	return schema.GroupVersionKind{Group: string(k.Group), Version: string(k.Version), Kind: string(k.Kind)}
}

// Resource is what the request is about, as it was converted for the tier.
func (a *Attributes) Resource() schema.GroupVersionResource {
	r := &a.question.Review.Resource
	return schema.GroupVersionResource{Group: string(r.Group), Version: string(r.Version), Resource: string(r.Resource)}
}

// Subresource is "status", "scale" and such; "" for the resource itself.
func (a *Attributes) Subresource() string { return string(a.question.Review.SubResource) }

// Is reports whether the request is about one of these resources of the group, and about
// no subresource.
func (a *Attributes) Is(group string, resources ...string) bool {
	r := a.question.Review
	if len(r.SubResource) > 0 || string(r.Resource.Group) != group {
		return false
	}
	for _, name := range resources {
		if string(r.Resource.Resource) == name {
			return true
		}
	}
	return false
}

// Namespace is the namespace that the request is in; "" for none.
func (a *Attributes) Namespace() string { return string(a.question.Review.Namespace) }

// Name is the object's name. It is "" while a name is to be generated.
func (a *Attributes) Name() string { return string(a.question.Review.Name) }

// DryRun reports that nothing will be stored.
func (a *Attributes) DryRun() bool { return a.question.Review.DryRun }

// User is who makes the request.
func (a *Attributes) User() authenticationv1.UserInfo {
	u := &a.question.Review.User
	info := authenticationv1.UserInfo{Username: string(u.Username), UID: string(u.UID)}
	for _, g := range u.Groups {
		info.Groups = append(info.Groups, string(g))
	}
	for _, e := range u.Extra {
		if info.Extra == nil {
			info.Extra = make(map[string]authenticationv1.ExtraValue, len(u.Extra))
		}
		values := make(authenticationv1.ExtraValue, len(e.Values))
		for i, v := range e.Values {
			values[i] = string(v)
		}
		info.Extra[string(e.Key)] = values
	}
	return info
}

// NamespaceLabels returns the labels of the namespace that the request is in, as they are
// stored: those that the Plugin names. It may ask the cluster, by the deadline. The labels
// are read only.
func (a *Attributes) NamespaceLabels() (map[string]string, error) {
	return a.question.StoredLabels(a.Namespace())
}

var errNoCaller = errors.New("nothing is known of the cluster")

// KubernetesVersion is that of the cluster's API servers; zero if it is not known.
func (a *Attributes) KubernetesVersion() (major, minor int) {
	if a.question.Caller == nil {
		return 0, 0
	}
	return a.question.Caller.Version()
}

// Reinvocation reports whether the plugin has been asked about this review before: a
// Mutator, and others have changed the object since.
func (a *Attributes) Reinvocation() bool { return a.question.Round > 0 }

// Object is the object as it would be stored, with what mutations have made of it so far.
func (a *Attributes) Object() Object { return Object{a, a.question.Object, false} }

// OldObject is the object that is stored.
func (a *Attributes) OldObject() Object { return Object{a, &a.question.Review.OldObject, true} }

// Object is one of the objects of a review.
type Object struct {
	of  *Attributes
	raw *codec.Object
	old bool
}

// IsNull reports that there is none, as there is no object in a DELETE.
func (o Object) IsNull() bool { return o.raw.IsNull() }

// Raw is the object in JSON; nil where there is none.
func (o Object) Raw() []byte { return o.raw.Raw }

// objectKey names what an object is decoded into.
type objectKey struct{ into reflect.Type }

// Decode returns the object as a T, such as corev1.Pod. It is decoded once in an admission,
// until a mutation changes it, and shared by all plugins: nobody may write to it. nil:
// there is no object. An error is no answer of the plugin, which returns it as it is.
func Decode[T any](o Object) (*T, error) {
	return decoded(o, func(raw []byte) (*T, error) {
		into := new(T)
		return into, json.UnmarshalCaseSensitivePreserveInts(raw, into)
	})
}

// Unstructured returns the object without a type. It is decoded once and shared, as by
// Decode.
func (o Object) Unstructured() (*unstructured.Unstructured, error) {
	return decoded(o, func(raw []byte) (*unstructured.Unstructured, error) {
		into := &unstructured.Unstructured{}
		return into, json.UnmarshalCaseSensitivePreserveInts(raw, &into.Object)
	})
}

// metadata is what Metadata decodes into, which nothing else does.
type metadata struct{ metav1.ObjectMeta }

// Metadata returns the object's metadata, without a look at the rest of the object; nil:
// there is none. It is decoded once and shared, as by Decode.
func (o Object) Metadata() (*metav1.ObjectMeta, error) {
	m, err := decoded(Object{o.of, &codec.Object{Raw: o.raw.Metadata}, o.old}, func(raw []byte) (*metadata, error) {
		into := new(metadata)
		return into, json.UnmarshalCaseSensitivePreserveInts(raw, into)
	})
	if m == nil {
		return nil, err
	}
	return &m.ObjectMeta, nil
}

// decoded decodes an object within the cluster's turn: the work is as long as the object.
func decoded[T any](o Object, decode func(raw []byte) (*T, error)) (*T, error) {
	if o.IsNull() {
		return nil, nil //nolint:nilnil // there is none
	}
	once := o.of.question.View.Once
	if o.old {
		once = o.of.question.View.OnceForAll
	}
	made, err := once(objectKey{reflect.TypeFor[T]()}, func() (any, error) {
		done, err := o.of.question.View.Turn(len(o.raw.Raw))
		if err != nil {
			return nil, &hook.CallError{Cause: hook.Shed, Err: err}
		}
		defer done()
		if !quantity.AreDecodable(o.raw.Raw, reflect.TypeFor[T]()) {
			return nil, unbounded(reflect.TypeFor[T]())
		}
		into, err := decode(o.raw.Raw)
		if err != nil {
			return nil, undecodable(err, reflect.TypeFor[T]())
		}
		return into, nil
	})
	if err != nil {
		return nil, err
	}
	return made.(*T), nil
}

// undecodable says that an object is no T, and where, without a word of it.
func undecodable(err error, into reflect.Type) error {
	if mistyped, ok := errors.AsType[*gojson.UnmarshalTypeError](err); ok && mistyped.Field != "" {
		return fmt.Errorf("the object cannot be decoded as %s: %s is not a %s", into, mistyped.Field, mistyped.Type)
	}
	return fmt.Errorf("the object cannot be decoded as %s", into)
}

// unbounded says that it would take long to find out what an object is as a T.
func unbounded(into reflect.Type) error {
	return fmt.Errorf("the object cannot be decoded as %s: a quantity is too small or too long", into)
}

// Once returns what create returned for key when the first plugin asked for it about this
// object. All plugins of the admission share it until a mutation changes the object; nobody
// may write to it. A key is of a type of the plugin's own, as in a context.
func Once[T any](a *Attributes, key any, create func() (T, error)) (T, error) {
	made, err := a.question.View.Once(key, func() (any, error) { return create() })
	if err != nil {
		var none T
		return none, err
	}
	return made.(T), nil
}

// Forbid denies the request in kube-apiserver's words: `pods "web" is forbidden: ` and then
// the reason. The code is 403.
func (a *Attributes) Forbid(format string, args ...any) Answer {
	status := apierrors.NewForbidden(a.Resource().GroupResource(), a.objectName(), fmt.Errorf(format, args...)).Status()
	return Answer{Denied: &status}
}

// objectName is the name as kube-apiserver's plugins word a denial, which come before a name
// is generated.
func (a *Attributes) objectName() string {
	if name := a.Name(); name != "" {
		return name
	}
	var metadata struct {
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
	}
	if o := a.question.Object; o.HasMetadata() {
		_ = json.UnmarshalCaseSensitivePreserveInts(o.Metadata, &metadata) // without them it is unknown
	}
	return cmp.Or(metadata.Name, metadata.GenerateName, "Unknown")
}

// WithReview hands the Attributes of an AdmissionReview in JSON to use: how a plugin is
// tested without a dispatcher. caller may be nil.
func WithReview(review []byte, caller hook.Caller, use func(a *Attributes)) error {
	body := codec.NewBody(review, nil)
	defer body.Release()
	r := codec.AcquireReview()
	defer codec.ReleaseReview(r)
	if err := r.Decode(body); err != nil {
		return err
	}
	v := hook.NewView(hook.Source{Review: r, Caller: caller})
	defer v.Release()
	use(&Attributes{hook.Question{View: v}})
	return nil
}
