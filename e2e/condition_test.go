// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
)

// lookAfterRights are what the controller needs besides what the mirror does.
const lookAfterRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: admission-dispatcher-controller}
rules:
- {apiGroups: [dispatcher.dev], resources: [clusters/status, webhookbindings/status, webhookconfigurations/status, plugins/status, registries/status], verbs: [patch]}
- {apiGroups: [dispatcher.dev], resources: [registries], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: admission-dispatcher-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admission-dispatcher-controller}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: admission-dispatcher}]
`

// control starts a controller, which is ended with the test.
func (m *mirrored) control(scratch string, flags ...string) *process.Process {
	m.t.Helper()
	p, err := start(m.dir, shared.programs.mirror, append([]string{"controller", "--config", "dispatcher.yaml", "--directory", scratch,
		"--namespace", "admission-dispatcher-registry", "--kubeconfig", "kubeconfig", "--replica", m.admin, "--admin-http",
		"--poll", "200ms", "--interval", "500ms"}, flags...)...)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.t.Logf("the log of controller %s ends:\n%s", scratch, p.Tail())
		}
		p.Kill()
	})
	return p
}

// conditioned waits until a condition of an object is about the object as it stands and
// has a status and a reason, and returns its message.
func (m *mirrored) conditioned(plural, name, condition, status, reason string) (message string) {
	m.t.Helper()
	in := schema.GroupVersionResource{Group: "dispatcher.dev", Version: "v1alpha1", Resource: plural}
	eventually(m.t, fmt.Sprintf("%s of %s/%s is %s (%s)", condition, plural, name, status, reason), func() error {
		o, err := m.management.objects.Resource(in).Get(m.t.Context(), name, getOptions)
		if err != nil {
			return err
		}
		text, err := json.Marshal(o.Object["status"])
		if err != nil {
			return err
		}
		var s struct{ Conditions []metav1.Condition }
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		c := meta.FindStatusCondition(s.Conditions, condition)
		if c == nil || string(c.Status) != status || c.Reason != reason || c.ObservedGeneration != o.GetGeneration() {
			return fmt.Errorf("it is %+v", c)
		}
		message = c.Message
		return nil
	})
	return message
}

// eastern is the Cluster east with its kubeconfig.
func eastern(t *testing.T, policy string) string {
	t.Helper()
	c := shared.east
	authority, err := os.ReadFile(filepath.Join(c.dir, "certificates", "apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: dispatcher-token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, c.config.Host, base64.StdEncoding.EncodeToString(authority))
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: east, namespace: admission-dispatcher-registry}
data: {kubeconfig: %s}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec:
  authentication: {certificate: {commonNames: [east]}}
  kubeconfigSecretRef: {name: east}
  registration: {policy: %q}
`, base64.StdEncoding.EncodeToString([]byte(text)), policy)
}

var validatingConfigurations = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}

// patch changes the validating registration of a cluster as somebody else.
func (c *cluster) patch(t *testing.T, change string) {
	t.Helper()
	_, err := c.objects.Resource(validatingConfigurations).Patch(t.Context(), "admission-dispatcher", types.JSONPatchType, []byte(change), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		t.Fatal(err)
	}
}

// The controller says of objects in a real API what became of them, and of a real cluster
// whether it calls for what is registered here; it repairs that where it may.
func TestConditionsAndRegistrations(t *testing.T) {
	m := newMirrored(t)
	text, err := os.ReadFile(filepath.Join(m.dir, "dispatcher.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.write("dispatcher.yaml", strings.Replace(string(text), "directory: mirror/current", "mirror: mirror", 1)); err != nil {
		t.Fatal(err)
	}
	m.put(lookAfterRights)
	m.put(eastern(t, "Report"))
	m.put(imported(t, quick))
	m.put(imported(t, readiness))
	m.mirror()
	m.until("something is served", func(s mirrorStatus) bool { return s.Generation != "" })
	m.dispatch()
	c := shared.east
	shared.webhooks.handle("/quick", allow)
	first := m.control("first")
	printed := func(flags ...string) string {
		text, err := m.registration("east", flags...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}

	t.Run("conditions", func(t *testing.T) {
		m.conditioned("webhookconfigurations", "quick", "Accepted", "True", "Accepted")
		if said := m.conditioned("webhookconfigurations", "quick", "Programmed", "True", "Programmed"); said != "1/1 replicas" {
			t.Error(said)
		}
		m.put("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lost}\nspec: {authentication: {certificate: {commonNames: [lost], caSecretRef: {name: absent}}}}\n")
		if said := m.conditioned("clusters", "lost", "Accepted", "False", "Unresolved"); !strings.HasPrefix(said, "spec.authentication.certificate.caSecretRef: ") {
			t.Error(said)
		}
		m.put(ofCluster("aaa", "east"))
		m.conditioned("clusters", "aaa", "Accepted", "False", "Conflict")
		m.conditioned("clusters", "east", "Accepted", "True", "Accepted")
		m.put(strings.Replace(imported(t, quick), "sideEffects: None", "sideEffects: None\n    matchConditions: [{name: broken, expression: \"object.\"}]", 1))
		if said := m.conditioned("webhookconfigurations", "quick", "Accepted", "False", "Invalid"); !strings.Contains(said, "matchConditions[0].expression") || !strings.Contains(said, "stays in force") {
			t.Error(said)
		}
		m.put(imported(t, quick))
		m.conditioned("webhookconfigurations", "quick", "Programmed", "True", "Programmed")
		m.conditioned("registries", "registry", "Programmed", "True", "Programmed")
	})
	t.Run("a registration that is stale", func(t *testing.T) {
		m.conditioned("clusters", "east", "RegistrationCurrent", "Unknown", "Forbidden")
		c.apply(t, printed("--rbac", "--rbac-user", "admission-dispatcher"))
		m.conditioned("clusters", "east", "RegistrationCurrent", "False", "NotRegistered")
		c.register(t, printed())
		m.conditioned("clusters", "east", "RegistrationCurrent", "True", "Current")
		m.put(strings.Replace(imported(t, quick), "configmaps", "services", 1))
		if said := m.conditioned("clusters", "east", "RegistrationCurrent", "False", "Stale"); !strings.Contains(said, "services") {
			t.Error(said)
		}
		c.apply(t, printed())
		m.conditioned("clusters", "east", "RegistrationCurrent", "True", "Current")
		c.patch(t, `[{"op": "add", "path": "/webhooks/0/namespaceSelector", "value": {"matchExpressions": [
			{"key": "control-plane", "operator": "NotIn", "values": ["true"]}, {"key": "kubernetes.azure.com/managedby", "operator": "NotIn", "values": ["aks"]}]}}]`)
		eventually(t, "what the enforcer added is no difference", func() error {
			if said := m.conditioned("clusters", "east", "RegistrationCurrent", "True", "Current"); !strings.Contains(said, "kubernetes.azure.com/managedby NotIn (aks)") {
				return fmt.Errorf("it says %q", said)
			}
			return nil
		})
		c.patch(t, `[{"op": "add", "path": "/webhooks/0/timeoutSeconds", "value": 3}]`)
		m.conditioned("clusters", "east", "RegistrationCurrent", "False", "Stale")

		// The same, applied by the controller, while the objects are there.
		m.put(eastern(t, "Apply"))
		m.conditioned("clusters", "east", "RegistrationCurrent", "Unknown", "Forbidden") // to write
		c.apply(t, printed("--rbac", "--rbac-user", "admission-dispatcher"))
		if said := m.conditioned("clusters", "east", "RegistrationCurrent", "False", "Stale"); !strings.Contains(said, "A dry run succeeded") {
			t.Error(said)
		}
		first.Kill()
		m.control("second", "--dry-run=false")
		m.conditioned("clusters", "east", "RegistrationCurrent", "True", "Current")
		// Somebody adds what is not wanted, and labels, which are theirs.
		c.patch(t, `[{"op": "add", "path": "/metadata/labels", "value": {"team": "fleet"}},
			{"op": "add", "path": "/webhooks/0/matchConditions/-", "value": {"name": "never", "expression": "false"}}]`)
		m.conditioned("clusters", "east", "RegistrationCurrent", "True", "Current")
		eventually(t, "what somebody added is gone, and what the enforcer did and labels stay", func() error {
			o, err := c.objects.Resource(validatingConfigurations).Get(t.Context(), "admission-dispatcher", getOptions)
			if err != nil {
				return err
			}
			text, err := o.MarshalJSON()
			if err != nil {
				return err
			}
			if has := string(text); strings.Contains(has, `"name":"never"`) || !strings.Contains(has, "managedby") || o.GetLabels()["team"] != "fleet" {
				return fmt.Errorf("it is %s", has)
			}
			return nil
		})
	})
	t.Run("two controllers", func(t *testing.T) {
		m.control("third", "--dry-run=false")
		in := schema.GroupVersionResource{Group: "dispatcher.dev", Version: "v1alpha1", Resource: "clusters"}
		eventually(t, "nothing is written", func() error {
			before, err := m.management.objects.Resource(in).Get(t.Context(), "east", getOptions)
			if err != nil {
				return err
			}
			<-time.After(3 * time.Second)
			after, err := m.management.objects.Resource(in).Get(t.Context(), "east", getOptions)
			if err == nil && before.GetResourceVersion() != after.GetResourceVersion() {
				err = fmt.Errorf("version %s became %s", before.GetResourceVersion(), after.GetResourceVersion())
			}
			return err
		})
	})
}
