// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/plugin"
)

// vault is a cluster with a source of secrets, and an authorizer.
type vault struct {
	hook.Caller // for what is not asked

	secrets secrets
}

func (v vault) Objects(r schema.GroupVersionResource) hook.Objects {
	if r.Resource != "secrets" {
		return nil
	}
	return v.secrets
}

func (vault) Authorize(access *authorizationv1.SubjectAccessReviewSpec, _ time.Time) (authorizationv1.SubjectAccessReviewStatus, error) {
	return authorizationv1.SubjectAccessReviewStatus{Allowed: access.User == "ann"}, nil
}

type secrets []*hook.Stored

func (s secrets) Get(namespace, name string, _ time.Time) (*hook.Stored, error) {
	for _, o := range s {
		if o.Namespace == namespace && o.Name == name {
			return o, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

func (s secrets) List(string, time.Time) ([]*hook.Stored, error) { return s, nil }

// A plugin sees what its cluster stores, decoded once for all admissions, and may ask the
// authorizer. What cannot be known or decoded is an error.
func TestCluster(t *testing.T) {
	resource := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: name}
	}
	v := vault{secrets: secrets{
		{Namespace: "shop", Name: "a", JSON: []byte(`{"metadata":{"name":"a"},"type":"t"}`)},
		{Namespace: "shop", Name: "b", JSON: []byte(`{"type":7}`)},
	}}
	ask := func(c hook.Caller, use func(a *plugin.Attributes)) {
		err := plugin.WithReview([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"}}}`), c, use)
		if err != nil {
			t.Fatal(err)
		}
	}
	var first *corev1.Secret
	for range 2 {
		ask(v, func(a *plugin.Attributes) {
			s, err := plugin.Get[corev1.Secret](a, resource("secrets"), "shop", "a")
			if err != nil || s == nil || s.Type != "t" {
				t.Fatalf("it is %v, %v", s, err)
			}
			if first == nil {
				first = s
			}
			if first != s {
				t.Error("it was decoded twice")
			}
			if s, err := plugin.Get[corev1.Secret](a, resource("secrets"), "", "a"); s != nil || err != nil {
				t.Errorf("of another namespace there is %v, %v", s, err)
			}
			if _, err := plugin.List[corev1.Secret](a, resource("secrets"), "shop"); err == nil || !strings.Contains(err.Error(), "type is not a") {
				t.Errorf("what cannot be decoded: %v", err)
			}
			if _, err := plugin.Get[corev1.Secret](a, resource("pods"), "shop", "a"); err == nil || err.Error() != "the cluster has no source of pods" {
				t.Errorf("no source: %v", err)
			}
			if s, err := a.Authorize(&authorizationv1.SubjectAccessReviewSpec{User: "ann"}); !s.Allowed || err != nil {
				t.Errorf("ann may: %v, %v", s, err)
			}
		})
	}
	ask(nil, func(a *plugin.Attributes) {
		_, err := plugin.List[corev1.Secret](a, resource("secrets"), "")
		if _, other := a.Authorize(nil); err == nil || other == nil {
			t.Errorf("nothing is known: %v, %v", err, other)
		}
	})
}
