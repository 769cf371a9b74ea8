// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// shown stands where a decision log with objects shows what there is.
const shown = "in-plain-sight"

// masked are reviews with secrets wherever a decision log with objects must not
// show them: in Secrets, by their kind or by their resource, and where the mask of
// TestMaskedCanaries leads.
func (p *planter) masked() []string {
	review := func(resource, object string) string {
		return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",`+
			`"kind":{"group":"","version":"v1","kind":"Thing"},"resource":{"group":"","version":"v1","resource":%q},`+
			`"name":"p","namespace":"shop","operation":"UPDATE","userInfo":{"username":"ann"},`+
			`"object":%s,"oldObject":%s,"options":{"kind":"UpdateOptions","fieldManager":%q,"masked":%q}}}`,
			resource, object, object, shown, p.secret())
	}
	secret := func(kind string) string {
		return fmt.Sprintf(`{"kind":%q,"metadata":{"name":%q,"annotations":{%q:%q}},"data":{%q:%q},"stringData":{"a":[%q]}}`,
			kind, shown, p.secret(), p.secret(), p.secret(), p.secret(), p.secret())
	}
	configMap := fmt.Sprintf(`{"kind":"ConfigMap","metadata":{"annotations":{"example.com/token":%q,"example.com/other":%q}},"data":{"app.yaml":%q,"b":%q}}`,
		p.secret(), shown, p.secret(), shown)
	pod := fmt.Sprintf(`{"kind":"Pod","spec":{"containers":[{"name":%q,"env":[{"name":"a","value":%q}]},{"env":%q}]},"deep":{"x":{"masked":{%q:%q}}}}`,
		shown, p.secret(), p.secret(), p.secret(), p.secret())
	return []string{
		review("secrets", secret("Secret")),
		review("secrets", secret("Partial")),
		review("things", secret("Secret")),
		review("configmaps", configMap),
		review("pods", pod),
	}
}

// TestMaskedCanaries plants secrets where a decision log with objects leaves values
// out.
func TestMaskedCanaries(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n" + `telemetry:
  decisionLog:
    file: decisions
    objects: true
    mask: [spec.containers.env, 'metadata.annotations["example.com/token"]', 'data["app.yaml"]', "deep.*.masked", masked]
`)
	c := w.clientOf(p.awaitReady())
	plant, reviews := &planter{}, 0
	for plant.planted.Load() < 1000 {
		for _, review := range plant.masked() {
			w.post(c, "validate", "application/json", review)
			w.post(c, "validate", "application/vnd.kubernetes.protobuf", w.inProtobuf(review))
			reviews += 2
		}
	}
	p.end()
	decisions, err := os.ReadFile(filepath.Join(w.dir, "decisions"))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range bytes.Lines(decisions) {
		lines++
		if bytes.Contains(line, []byte(canary)) || !bytes.Contains(line, []byte(shown)) {
			t.Fatalf("the line is %s", line)
		}
	}
	if lines != reviews {
		t.Errorf("%d lines of %d reviews", lines, reviews)
	}
	t.Logf("%d secrets, %d bytes told", plant.planted.Load(), len(decisions))
}
