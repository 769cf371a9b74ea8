// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
)

func TestAddToScheme(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Cluster", "WebhookBinding", "WebhookConfiguration", "Plugin", "Registry"} {
		for _, kind := range []string{kind, kind + "List"} {
			if _, err := s.New(schema.GroupVersionKind{Group: "dispatcher.dev", Version: "v1alpha1", Kind: kind}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestDuration(t *testing.T) {
	var spec v1alpha1.WebhookBindingSpec
	if err := json.Unmarshal([]byte(`{"webhooks": ["*/*"], "timeout": "250ms"}`), &spec); err != nil || spec.Timeout.Duration != 250*time.Millisecond {
		t.Errorf("%v, %v", spec.Timeout, err)
	}
	if text, err := json.Marshal(&spec); err != nil || string(text) != `{"webhooks":["*/*"],"timeout":"250ms"}` {
		t.Errorf("%s, %v", text, err)
	}
	for _, wrong := range []string{`"soon"`, `5`, `""`} {
		if err := json.Unmarshal([]byte(`{"timeout": `+wrong+`}`), &spec); err == nil {
			t.Errorf("%s is a timeout", wrong)
		}
	}
}
