// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
)

func TestDefaults(t *testing.T) {
	empty := admissionregistrationv1.MutatingWebhook{
		Rules:        []admissionregistrationv1.RuleWithOperations{{}},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{}},
	}
	common := admissionregistrationv1.MutatingWebhook{
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Rule: admissionregistrationv1.Rule{Scope: new(admissionregistrationv1.AllScopes)},
		}},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Port: new(int32(443))},
		},
		NamespaceSelector:  &metav1.LabelSelector{},
		ObjectSelector:     &metav1.LabelSelector{},
		ReinvocationPolicy: new(admissionregistrationv1.NeverReinvocationPolicy),
	}
	v1, beta := common, common
	v1.FailurePolicy = new(admissionregistrationv1.Fail)
	v1.MatchPolicy = new(admissionregistrationv1.Equivalent)
	v1.TimeoutSeconds = new(int32(10))
	beta.FailurePolicy = new(admissionregistrationv1.Ignore)
	beta.MatchPolicy = new(admissionregistrationv1.Exact)
	beta.TimeoutSeconds = new(int32(30))
	beta.SideEffects = new(admissionregistrationv1.SideEffectClassUnknown)
	beta.AdmissionReviewVersions = []string{"v1beta1"}
	for name, c := range map[string]struct {
		beta bool
		want admissionregistrationv1.MutatingWebhook
	}{
		"E5 v1":      {false, v1},
		"E5 v1beta1": {true, beta},
	} {
		t.Run(name, func(t *testing.T) {
			got := empty.DeepCopy()
			setDefaults(got, chain.Mutating, c.beta)
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestVersionsHaveTheSameFields is why v1beta1 may be decoded as v1.
func TestVersionsHaveTheSameFields(t *testing.T) {
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[admissionregistrationv1.ValidatingWebhookConfiguration](), reflect.TypeFor[admissionregistrationv1beta1.ValidatingWebhookConfiguration]()},
		{reflect.TypeFor[admissionregistrationv1.MutatingWebhookConfiguration](), reflect.TypeFor[admissionregistrationv1beta1.MutatingWebhookConfiguration]()},
	} {
		if diff := cmp.Diff(shape(pair[0]), shape(pair[1])); diff != "" {
			t.Errorf("%v (-v1 +v1beta1):\n%s", pair[0], diff)
		}
	}
}

// shape lists the JSON names and kinds of all fields below t.
func shape(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return shape(t.Elem())
	case reflect.Struct:
	default:
		return []string{t.Kind().String()}
	}
	var fields []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "metadata" {
			continue
		}
		for _, below := range shape(f.Type) {
			fields = append(fields, name+"."+below)
		}
	}
	return fields
}
