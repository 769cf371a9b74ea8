// SPDX-License-Identifier: Apache-2.0

package decisionlog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/decisionlog"
)

const wholeRequest = `{"uid":"u-1","kind":{"group":"apps","version":"v1","kind":"Deployment"},` +
	`"resource":{"group":"apps","version":"v1","resource":"deployments"},"subResource":"scale",` +
	`"name":"p","namespace":"shop","operation":"UPDATE",` +
	`"userInfo":{"username":"ann","uid":"7","groups":["a","b"],"extra":{"team":["blue","red"]}},"dryRun":true,` +
	`"requestKind":{"group":"extensions","version":"v1beta1","kind":"Deployment"},` +
	`"requestResource":{"group":"extensions","version":"v1beta1","resource":"deployments"},"requestSubResource":"scale",` +
	`"object":{"kind":"Deployment","metadata":{"name":"p"}},"oldObject":{"kind":"Deployment","metadata":{"name":"p"}},` +
	`"options":{"apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl","kind":"UpdateOptions"}}`

// requestIn writes a decision about a request and returns what its line says of it.
func requestIn(t *testing.T, cfg decisionlog.Config, request string) (line struct {
	Cut     bool
	Request json.RawMessage
},
) {
	t.Helper()
	out := &collected{}
	cfg.Out, cfg.Allows = out, true
	l, err := decisionlog.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	review := new(codec.Review)
	text := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":` + request + `}`
	if err := review.Decode(codec.NewBody([]byte(text), nil)); err != nil {
		t.Fatal(err)
	}
	r := decidedIn("east", allowed())
	r.Review = review
	l.Observe(context.Background(), r)
	l.Close()
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	return line
}

// With objects a line has all of the request, so that explain decides as was decided.
func TestDecisionHasTheWholeRequest(t *testing.T) {
	line := requestIn(t, decisionlog.Config{Objects: true}, wholeRequest)
	if diff := cmp.Diff(wholeRequest, string(line.Request)); diff != "" || line.Cut {
		t.Errorf("cut: %v (-want +got):\n%s", line.Cut, diff)
	}
}

// Without, it has neither options nor what authenticators know.
func TestDecisionWithoutObjects(t *testing.T) {
	line := requestIn(t, decisionlog.Config{}, wholeRequest)
	for _, none := range []string{"object", "blue", "kubectl"} {
		if strings.Contains(string(line.Request), none) {
			t.Errorf("%s is in %s", none, line.Request)
		}
	}
	if !strings.Contains(string(line.Request), `"requestSubResource":"scale"`) {
		t.Errorf("the request is %s", line.Request)
	}
}

func TestDecisionSaysWhatIsCut(t *testing.T) {
	for name, user := range map[string]string{
		"a long name":    fmt.Sprintf(`{"username":%q}`, strings.Repeat("é", 200)),
		"many groups":    `{"groups":["a"` + strings.Repeat(`,"a"`, 64) + `]}`,
		"a long extra":   fmt.Sprintf(`{"extra":{"a":[%q]}}`, strings.Repeat("a", 257)),
		"many of extras": `{"extra":{"a":["a"` + strings.Repeat(`,"a"`, 64) + `]}}`,
	} {
		line := requestIn(t, decisionlog.Config{Objects: true}, strings.Replace(wholeRequest,
			`{"username":"ann","uid":"7","groups":["a","b"],"extra":{"team":["blue","red"]}}`, user, 1))
		if !line.Cut {
			t.Errorf("%s: %s", name, line.Request)
		}
	}
}
