// SPDX-License-Identifier: Apache-2.0

package podsecurity_test

import (
	"encoding/json"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/admission/api/load"
	"k8s.io/pod-security-admission/admission/api/validation"
	kubejson "sigs.k8s.io/json"

	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
	"github.com/admission-dispatcher/dispatcher/plugin/podsecurity"
)

// FuzzConfiguration compares what is said of a PodSecurityConfiguration with what
// kube-apiserver's own decoder and validation say of it.
func FuzzConfiguration(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration","defaults":{"enforce":"baseline","enforce-version":"v1.30","audit":"restricted","warn":"privileged"},` +
			`"exemptions":{"usernames":["ann",""],"namespaces":["a","A"],"runtimeClasses":["kata","kata"]}}`,
		`{"apiVersion":"pod-security.admission.config.k8s.io/v1beta1","kind":"PodSecurityConfiguration","defaults":{"enforce":"strict","warn-version":"1.30","audit-version":"latest"}}`,
		`{"apiVersion":"pod-security.admission.config.k8s.io/v1alpha1","kind":"PodSecurityConfiguration","exemptions":{"namespaces":null,"usernames":["a","b"]}}`,
		`{"apiVersion":"pod-security.admission.config.k8s.io/v2","kind":"PodSecurityConfiguration"}`, `{"apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"Other"}`,
		`{"apiVersion":"v1","kind":"PodSecurityConfiguration","extra":1}`, `{"defaults":{"Enforce":"baseline"}}`,
	} {
		f.Add([]byte(seed))
	}
	fuzz.Run(f, func(t testing.TB, configuration []byte) {
		var c podsecurity.Configuration
		strict, err := kubejson.UnmarshalStrict(configuration, &c)
		if err != nil || len(strict) > 0 || c.APIVersion == "" || c.Kind == "" || !json.Valid(configuration) {
			return // which may be left out here
		}
		_, ours := podsecurity.New(c)
		decoded, err := load.LoadFromData(configuration)
		if err != nil {
			if !slices.ContainsFunc(ours, func(e *field.Error) bool { return e.Field == "apiVersion" || e.Field == "kind" }) {
				t.Errorf("theirs cannot be decoded, %v, ours %v", err, ours)
			}
			return
		}
		theirs := validation.ValidatePodSecurityConfiguration(decoded)
		if diff := gocmp.Diff(texts(theirs), texts(ours)); diff != "" {
			t.Errorf("%s: -theirs +ours\n%s", configuration, diff)
		}
	})
}

func texts(errs field.ErrorList) (list []string) {
	for _, err := range errs {
		list = append(list, err.Error())
	}
	slices.Sort(list)
	return list
}
