// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/policy"
)

// H14 namespaceObject is the stored Namespace, of which the labels alone may be known; null
// where the request is in none, and in matchConditions. One that is not known denies,
// whatever the failure policy.
func TestNamespaceObject(t *testing.T) {
	stored := policy.ParamList{{Name: "shop", JSON: []byte(`{"metadata":{"name":"shop","labels":{"team":"a"},"annotations":{"a":"b"}},"status":{"phase":"Active"}}`)}}
	knows := func(o hook.Objects) *caller {
		return &caller{objects: map[schema.GroupVersionResource]hook.Objects{policy.Namespaces(): o}}
	}
	const labels, whole = "namespaceObject.metadata.name + string(namespaceObject.metadata.labels.team)", "string(namespaceObject.metadata.annotations.a) + namespaceObject.status.phase"
	for _, row := range []struct {
		name      string
		c         *caller
		namespace string
		message   string
		want      string
		code      int32 // of a Refusal
	}{
		{"stored", knows(stored), "shop", whole, "bActive", 0},
		{"stored, labels", knows(stored), "shop", labels, "shopa", 0},
		{"in none", &caller{}, "", "namespaceObject == null ? 'null' : 'one'", "null", 0},
		{"unknown", knows(stored), "bank", labels, `namespaces "bank" not found`, 404},
		{"labels that a selector sees are not all that there are", &caller{labels: map[string]string{"team": "b"}}, "shop", labels, `namespace "shop" is not known: the cluster has no source of namespaces`, 403},
		{"not synced", knows(unsynced{}), "shop", labels, `namespace "shop" is not known: the watch is behind`, 403},
		{"nobody has it", nil, "shop", labels, `namespace "shop" is not known: the cluster has no source of namespaces`, 403},
		{"no expression looks at it", nil, "shop", "'fine'", "fine", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := bindingOf(t, `{failurePolicy: Ignore, matchConditions: [{name: n, expression: namespaceObject == null}], validations: [{expression: 'false', messageExpression: "`+row.message+`"}]}`, "", nil, "Deny")
			got := ask(asking(t, row.c, row.namespace), b, time.Time{})
			var refusal *hook.Refusal
			if errors.As(got.err, &refusal); (refusal != nil) != (row.code != 0) || refusal != nil && (refusal.Code != row.code || refusal.Error() != row.want || refusal.Cause != hook.MatchError) {
				t.Errorf("%+v", got)
			}
			if refusal == nil && got.resp.Message != row.want {
				t.Errorf("%+v", got)
			}
			x, err := b.Explain(asking(t, row.c, row.namespace))
			want := ": " + row.want
			if strings.HasSuffix(want, "no source of namespaces") {
				want = "depends on what the cluster stores, which was not asked"
			}
			if !strings.HasSuffix(x.Answer, want) || err != nil || (refusal == nil) != (len(x.Steps) > 0) {
				t.Errorf("explained as %q, %v", x.Answer, err)
			}
		})
	}
}

// H14 A Namespace has none: it is not its own.
func TestNamespaceOfANamespace(t *testing.T) {
	about := func(kind string) *hook.View {
		return viewOfText(t, nil, strings.Replace(review, `"group":"","version":"v1","kind":"Pod"`, kind, 1))
	}
	if o, err := policy.NamespaceObject(&hook.Question{View: about(`"group":"","version":"v1","kind":"Namespace"`)}); o != nil || err != nil {
		t.Errorf("%v, %v", o, err)
	}
	if o, err := policy.NamespaceObject(&hook.Question{View: about(`"group":"","version":"v2","kind":"Namespace"`)}); o != nil || err == nil {
		t.Errorf("of another version: %v, %v", o, err)
	}
	if o, err := policy.NamespaceObject(&hook.Question{View: about(`"group":"example.com","version":"v1","kind":"Namespace"`)}); o != nil || err == nil {
		t.Errorf("of another group: %v, %v", o, err)
	}
}
