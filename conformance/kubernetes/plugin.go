// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authentication/user"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // for the conversion of its kinds
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubeapiserver/options"
)

// originals are the plugins of kube-apiserver.
type originals struct {
	plugins *admission.Plugins
	client  clientset.Interface // of a cluster that has nothing but what informers have
	kinds   meta.RESTMapper
	gates   featuregate.FeatureGate
}

func newOriginals() (*originals, error) {
	o := &originals{plugins: admission.NewPlugins(), client: fake.NewClientset(), kinds: testrestmapper.TestOnlyStaticRESTMapper(legacyscheme.Scheme)}
	options.RegisterAllAdmissionPlugins(o.plugins)
	gates := utilfeature.DefaultFeatureGate.DeepCopy()
	o.gates = gates
	return o, gates.SetFromMap(map[string]bool{string(features.ClusterTrustBundle): true})
}

// ask asks the plugin of the request, both phases about the same object.
func (o *originals) ask(r *Request) (*Answer, error) {
	factory := informers.NewSharedInformerFactory(o.client, 0)
	for _, raw := range r.Stored {
		if err := store(factory, raw); err != nil {
			return nil, err
		}
	}
	var configuration io.Reader
	if r.Configuration != "" {
		configuration = strings.NewReader(r.Configuration)
	}
	initialize := initializer.New(o.client, nil, sorted{factory}, rights(r.Rights), o.gates, nil, nil, o.kinds)
	asked, err := o.plugins.InitPlugin(r.Plugin, configuration, initialize)
	if err != nil {
		return nil, err
	}
	if waits, ok := asked.(interface{ SetReadyFunc(admission.ReadyFunc) }); ok {
		waits.SetReadyFunc(func() bool { return true })
	}

	kind := schema.GroupVersionKind(r.Kind)
	answer := &Answer{}
	if answer.Object, err = again(kind, r.Object); err != nil {
		return nil, err
	}
	if answer.OldObject, err = again(kind, r.OldObject); err != nil {
		return nil, err
	}
	mutated, err := internal(kind, answer.Object)
	if err != nil {
		return nil, err
	}
	if mutator, ok := asked.(admission.MutationInterface); ok {
		answer.Mutates = true
		a, err := r.attributes(mutated, answer)
		if err != nil {
			return nil, err
		}
		if asked.Handles(a.GetOperation()) {
			answer.Mutation = denial(mutator.Admit(context.Background(), a, nil))
		}
	}
	if answer.Mutated, err = external(kind, mutated); err != nil {
		return nil, err
	}
	if validator, ok := asked.(admission.ValidationInterface); ok {
		answer.Validates = true
		object, err := internal(kind, answer.Object)
		if err != nil {
			return nil, err
		}
		a, err := r.attributes(object, answer)
		if err != nil {
			return nil, err
		}
		if asked.Handles(a.GetOperation()) {
			answer.Validation = denial(validator.Validate(context.Background(), a, nil))
		}
	}
	return answer, nil
}

func (r *Request) attributes(object runtime.Object, answer *Answer) (admission.Attributes, error) {
	old, err := internal(schema.GroupVersionKind(r.Kind), answer.OldObject)
	if err != nil {
		return nil, err
	}
	return admission.NewAttributesRecord(object, old, schema.GroupVersionKind(r.Kind), r.Namespace, r.Name, schema.GroupVersionResource(r.Resource),
		r.Subresource, admission.Operation(r.Operation), &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "ann"}), nil
}

// denial is an error as the API server answers it.
func denial(err error) *Denial {
	if err == nil {
		return nil
	}
	status, ok := err.(apierrors.APIStatus) // the API server does not unwrap it either
	if !ok {
		return &Denial{Plain: true, Code: 500, Message: err.Error()}
	}
	s := status.Status()
	return &Denial{Code: s.Code, Reason: s.Reason, Message: s.Message}
}

// internal is the object as plugins have it, without defaults; nil: there is none.
func internal(kind schema.GroupVersionKind, raw json.RawMessage) (runtime.Object, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil //nolint:nilnil // there is none
	}
	object, err := legacyscheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return legacyscheme.Scheme.UnsafeConvertToVersion(object, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal})
}

// external is the object as webhooks get it.
func external(kind schema.GroupVersionKind, object runtime.Object) (json.RawMessage, error) {
	if object == nil {
		return json.RawMessage("null"), nil
	}
	converted, err := legacyscheme.Scheme.ConvertToVersion(object, kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	return json.Marshal(converted)
}

// again is the object after it was internal.
func again(kind schema.GroupVersionKind, raw json.RawMessage) (json.RawMessage, error) {
	object, err := internal(kind, raw)
	if err != nil {
		return nil, err
	}
	return external(kind, object)
}
