// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
)

// mirrorRights are what the mirror needs, and no more.
const mirrorRights = `apiVersion: v1
kind: Namespace
metadata: {name: admission-dispatcher-registry}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: admission-dispatcher-mirror}
rules:
- {apiGroups: [dispatcher.dev], resources: [clusters, webhookbindings, webhookconfigurations, plugins, registries], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: admission-dispatcher-mirror}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admission-dispatcher-mirror}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: admission-dispatcher}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: admission-dispatcher-mirror, namespace: admission-dispatcher-registry}
rules:
- {apiGroups: [""], resources: [secrets, configmaps], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: admission-dispatcher-mirror, namespace: admission-dispatcher-registry}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: admission-dispatcher-mirror}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: admission-dispatcher}]
`

// mirrored is a dispatcher whose registry is the API of a cluster of its own.
type mirrored struct {
	*dispatcher
	t          *testing.T
	management *cluster
	sync       *process.Process
	admin      string
}

// mirrorStatus is what of the mirror's status is looked at.
type mirrorStatus struct {
	Generation string
	Next       *struct {
		Generation  string
		Lost        []string
		Quarantined bool
	}
	Refused []struct {
		Object   string
		Kept     bool
		Reason   string
		Problems []struct{ Field, Reason string }
	}
	Quarantined []struct{ Generation string }
	Resources   []struct {
		Resource string
		Synced   bool
		Error    string
	}
}

func newMirrored(t *testing.T) *mirrored {
	t.Helper()
	management, err := shared.startCluster(clusterOptions{name: "management"})
	t.Cleanup(func() { management.close() })
	if err != nil {
		t.Fatal(err)
	}
	management.define(t)
	d, err := shared.registry()
	if err != nil {
		t.Fatal(err)
	}
	m := &mirrored{dispatcher: d, t: t, management: management}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	m.admin = "127.0.0.1:" + port
	configuration := strings.NewReplacer("directory: registry", "directory: mirror/current", `admin: {listen: "127.0.0.1:0"}`, `admin: {listen: "`+m.admin+`"}`).
		Replace(fmt.Sprintf(processConfiguration, shared.dir, shared.front.address()))
	m.put(mirrorRights)
	if err := d.write("dispatcher.yaml", configuration); err != nil {
		t.Fatal(err)
	}
	if err := d.write("kubeconfig", fmt.Sprintf(kubeconfig, management.config.Host, filepath.Join(management.dir, "certificates", "apiserver.crt"), "dispatcher-token")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range []*process.Process{m.sync, m.process} {
			if p != nil {
				if t.Failed() {
					t.Logf("the log of process %d ends:\n%s", p.ID(), p.Tail())
				}
				p.Kill()
			}
		}
		shared.front.point("")
	})
	return m
}

// mirror starts the mirror.
func (m *mirrored) mirror() {
	m.t.Helper()
	var err error
	m.sync, err = start(m.dir, shared.programs.mirror, "sync", "--config", "dispatcher.yaml", "--directory", "mirror",
		"--namespace", "admission-dispatcher-registry", "--kubeconfig", "kubeconfig", "--activation-spread", "0s", "--probation", "2s", "--live", "http://"+m.admin+"/livez")
	if err != nil {
		m.t.Fatal(err)
	}
}

// dispatch starts the dispatcher.
func (m *mirrored) dispatch() {
	m.t.Helper()
	if err := m.serve(); err != nil {
		m.t.Fatal(err)
	}
	shared.front.point(m.address)
}

// put creates or replaces an object in the API.
func (m *mirrored) put(manifest string) {
	m.t.Helper()
	for _, o := range documents(m.t, shared.fill(manifest)) {
		resource, err := m.management.resource(o)
		if err != nil {
			m.t.Fatal(err)
		}
		if _, err := resource.Apply(m.t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "e2e", Force: true}); err != nil {
			m.t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func (m *mirrored) status() (s mirrorStatus, err error) {
	text, err := os.ReadFile(filepath.Join(m.dir, "mirror", "status.json"))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// until waits for a status, and returns it.
func (m *mirrored) until(what string, is func(mirrorStatus) bool) (s mirrorStatus) {
	m.t.Helper()
	eventually(m.t, what, func() (err error) {
		if s, err = m.status(); err == nil && !is(s) {
			err = fmt.Errorf("it is %+v", s)
		}
		return err
	})
	return s
}

// refused waits until an object is refused.
func (m *mirrored) refused(object string) (kept bool, field string) {
	m.t.Helper()
	m.until(object+" is refused", func(s mirrorStatus) bool {
		for _, r := range s.Refused {
			if r.Object == object {
				kept, field = r.Kept, ""
				if len(r.Problems) > 0 {
					field = r.Problems[0].Field
				}
				return true
			}
		}
		return false
	})
	return kept, field
}

func ofCluster(name, identity string) string {
	return fmt.Sprintf("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {authentication: {certificate: {commonNames: [%s]}}}\n", name, identity)
}

// imported is a manifest as "dispatcher import" converts it.
func imported(t *testing.T, manifest string) string {
	t.Helper()
	cmd := exec.Command(shared.programs.dispatcher, "import", "-f", "-")
	cmd.Stdin = strings.NewReader(shared.fill(manifest))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// The registry from a real API: what is applied is served, what is bad stays out alone,
// nobody takes the place of another, a great loss waits to be confirmed, and with the API
// and both processes gone the same generation is served as before.
func TestRegistryFromAnAPI(t *testing.T) {
	m := newMirrored(t)
	for i := range 98 {
		m.put(ofCluster(fmt.Sprintf("c%02d", i), fmt.Sprintf("c%02d", i)))
	}
	m.put(ofCluster("east", "east"))
	m.put("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lost}\nspec: {authentication: {certificate: {commonNames: [lost], caSecretRef: {name: absent}}}}\n")
	m.put(imported(t, quick))
	m.put(imported(t, readiness))
	m.mirror()
	m.until("something is served", func(s mirrorStatus) bool { return s.Generation != "" })
	if _, field := m.refused("Cluster/lost"); field != "spec.authentication.certificate.caSecretRef" {
		t.Errorf("the problem is at %q", field)
	}
	m.dispatch()
	c := shared.east
	shared.webhooks.handle("/quick", allow)
	registration, err := m.registration("east")
	if err != nil {
		t.Fatal(err)
	}
	c.register(t, registration)
	namespace := c.namespace(t, nil)

	t.Run("a change is served", func(t *testing.T) {
		shared.webhooks.handle("/other", deny(http.StatusForbidden, "by the change"))
		began := time.Now()
		m.put(strings.ReplaceAll(imported(t, quick), "/quick", "/other"))
		m.denied(c, namespace, "by the change")
		t.Logf("served after %v", time.Since(began).Round(time.Millisecond))
		shared.webhooks.handle("/quick", deny(http.StatusForbidden, "as before"))
		m.put(imported(t, quick))
		m.denied(c, namespace, "as before")
	})
	t.Run("the incumbent wins", func(t *testing.T) {
		m.put(ofCluster("aaa", "east"))
		if kept, _ := m.refused("Cluster/aaa"); kept {
			t.Error("it was never accepted")
		}
		m.sync.Kill()
		m.mirror()
		m.until("it is still refused", func(s mirrorStatus) bool { return len(s.Refused) == 2 && s.Refused[0].Object == "Cluster/aaa" })
		m.denied(c, namespace, "as before")
	})
	t.Run("the dispatcher dies with a generation", func(t *testing.T) {
		proven := m.proven()
		m.put(ofCluster("poison", "poison"))
		s := m.until("it is on trial", func(s mirrorStatus) bool { return s.Generation != proven })
		m.process.Kill()
		m.until("the one before is served", func(now mirrorStatus) bool {
			return now.Generation == proven && len(now.Quarantined) == 1 && now.Quarantined[0].Generation == s.Generation
		})
		m.dispatch()
		m.denied(c, namespace, "as before")
		m.remove("clusters", "poison")
		m.until("nothing waits", func(s mirrorStatus) bool { return s.Next == nil })
	})
	before := m.proven()
	t.Run("a great loss", func(t *testing.T) {
		for i := range 60 {
			m.remove("clusters", fmt.Sprintf("c%02d", i))
		}
		s := m.until("it is held back", func(s mirrorStatus) bool {
			return s.Next != nil && slices.Contains(s.Next.Lost, "60 of 99 Clusters") && s.Generation == before
		})
		m.put("apiVersion: dispatcher.dev/v1alpha1\nkind: Registry\nmetadata: {name: registry, annotations: {dispatcher.dev/confirm-shrink: \"" + s.Next.Generation + "\"}}\n")
		m.until("it is served when confirmed", func(now mirrorStatus) bool { return now.Generation == s.Next.Generation && now.Next == nil })
		before = m.proven()
		definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		if err := m.management.objects.Resource(definitions).Delete(t.Context(), "webhookconfigurations.dispatcher.dev", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		m.until("the loss of a kind is held back", func(s mirrorStatus) bool {
			return s.Generation == before && s.Next != nil && slices.Contains(s.Next.Lost, "every WebhookConfiguration (there were 3)")
		})
		m.denied(c, namespace, "as before")
	})
	t.Run("the API and both processes are gone", func(t *testing.T) {
		m.management.process.Kill()
		m.sync.Kill()
		m.mirror()
		old := m.process
		if err := m.serve(); err == nil {
			t.Fatal("two dispatchers have one admin listener")
		}
		old.Kill()
		m.dispatch()
		m.denied(c, namespace, "as before")
		m.until("the API is away", func(s mirrorStatus) bool {
			return s.Generation == before && len(s.Resources) > 0 && !s.Resources[0].Synced && s.Resources[0].Error != ""
		})
	})
}

// proven waits until what is served is not on trial any more, and returns it.
func (m *mirrored) proven() string {
	m.t.Helper()
	eventually(m.t, "the trial is over", func() error {
		if _, err := os.Stat(filepath.Join(m.dir, "mirror", "activating")); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("it goes on (%w)", err)
		}
		return nil
	})
	s, err := m.status()
	if err != nil {
		m.t.Fatal(err)
	}
	return s.Generation
}

// denied waits until the cluster's user is denied something with a message.
func (m *mirrored) denied(c *cluster, namespace, message string) {
	m.t.Helper()
	eventually(m.t, "a denial "+message, func() error {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "tried", "namespace": namespace}}}
		_, err := c.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace).
			Create(m.t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), message) {
			return fmt.Errorf("the answer is %v", err) //nolint:errorlint // it may be nil
		}
		return nil
	})
}

func (m *mirrored) remove(plural, name string) {
	m.t.Helper()
	in := schema.GroupVersionResource{Group: "dispatcher.dev", Version: "v1alpha1", Resource: plural}
	if err := m.management.objects.Resource(in).Delete(m.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		m.t.Fatal(err)
	}
}
