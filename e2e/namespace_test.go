// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const byNamespaceLabel = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guarded}
webhooks:
- name: guarded.e2e.example.com
  clientConfig: {url: "$URL/guarded", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps], scope: Namespaced}]
  namespaceSelector: {matchLabels: {guard: "on"}}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

// watched makes the dispatcher watch the namespaces of east, with no more rights
// than "dispatcher registration --rbac" gives.
func watched(t *testing.T, c *cluster) string {
	t.Helper()
	d, err := shared.registry()
	if err != nil {
		t.Fatal(err)
	}
	rights, err := d.run("registration", "--rbac", "--rbac-user", "admission-dispatcher")
	if err != nil {
		t.Fatal(err)
	}
	c.apply(t, string(rights))
	const file = "dispatcher.kubeconfig"
	if err := c.write(file, fmt.Sprintf(kubeconfig, c.config.Host, c.config.CAFile, "dispatcher-token")); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(clusters, "spec: {", fmt.Sprintf("spec: {kubeconfigFile: %q, ", filepath.Join(c.dir, file)), 1)
}

// labelDecidesWithin is the promise. It is measured from the moment at which a watch
// of the test's own has the label, to the sending of the first request that it
// decides, in the middle of several changes: so a busy machine is not part of it.
const labelDecidesWithin = time.Second

// A namespace gets a label, and within a second its selector decides otherwise; the
// first object of a brand-new namespace is decided by that namespace's labels.
func TestNamespaceLabels(t *testing.T) {
	c := shared.east
	dispatchAs(t, watched(t, c), []*cluster{c}, byNamespaceLabel, forWestNothing)
	shared.webhooks.handle("/guarded", deny(http.StatusForbidden, "this namespace is guarded"))
	create := func(namespace string) error {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "settings-"}}
		_, err := c.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), m, metav1.CreateOptions{})
		return err
	}
	guarded := func(err error) bool { return err != nil && strings.Contains(err.Error(), "this namespace is guarded") }
	for range 5 { // each in one breath
		if err := create(c.namespace(t, nil)); err != nil {
			t.Errorf("in a new namespace without the label: %v", err)
		}
		if err := create(c.namespace(t, map[string]string{"guard": "on"})); !guarded(err) {
			t.Errorf("in a new namespace with the label: %v", err)
		}
	}
	namespace := c.namespace(t, nil)
	if err := create(namespace); err != nil {
		t.Fatal(err)
	}
	told, err := c.client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + namespace})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Stop()
	var took []time.Duration
	for _, value := range []string{"on", "off", "on", "off", "on", "off", "on"} {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"guard":%q}}}`, value)
		if _, err := c.client.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		for e := range told.ResultChan() {
			if n, ok := e.Object.(*corev1.Namespace); ok && n.Labels["guard"] == value {
				break
			}
		}
		known, sent := time.Now(), time.Time{}
		eventually(t, "the selector sees guard="+value, func() error {
			sent = time.Now()
			if err := create(namespace); guarded(err) != (value == "on") {
				return errors.Join(errors.New("not yet"), err)
			}
			return nil
		})
		took = append(took, sent.Sub(known))
	}
	slices.Sort(took)
	t.Logf("a label decides after %v", took)
	if median := took[len(took)/2]; median > labelDecidesWithin {
		t.Errorf("a label decides after %v, want within %v", median, labelDecidesWithin)
	}
}

// forWestNothing keeps a webhook that needs labels from a cluster without any.
const forWestNothing = `apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: guarded}
spec:
  webhooks: ["guarded/*"]
  clusterSelector: {matchLabels: {env: dev}}
  onlySelectedClusters: true
`

// The rights that are printed are enough for namespaces, and for nothing else.
func TestPrintedRights(t *testing.T) {
	c := shared.east
	watched(t, c)
	client, err := kubernetes.NewForConfig(c.as("dispatcher-token"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rights hold", func() error {
		_, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		return err
	})
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", getOptions); err != nil {
		t.Error(err)
	}
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
	if _, err := client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("secrets can be listed")
	}
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "default", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
		t.Error("namespaces can be deleted")
	}
}

const ofAuthReviews = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: reviews}
webhooks:
- name: reviews.e2e.example.com
  clientConfig: {url: "$URL/reviews", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [authorization.k8s.io], apiVersions: ["*"], resources: [selfsubjectaccessreviews]}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

// The API server of these tests is 1.36 and sends reviews of authorization to
// webhooks that select them. So they judge them here too, where the version is read
// from the cluster and where nobody knows it; where it is said to be 1.37 nobody is
// asked.
func TestAuthReviews(t *testing.T) {
	c := shared.east
	version := func(text string) string { return strings.Replace(clusters, "spec: {", "spec: {"+text, 1) }
	for name, tt := range map[string]struct {
		clusters string
		judged   bool
	}{
		"read":    {watched(t, c), true},
		"unknown": {clusters, true},
		"1.36":    {version(`kubernetesVersion: "1.36", `), true},
		"1.37":    {version(`kubernetesVersion: "1.37", `), false},
	} {
		t.Run(name, func(t *testing.T) {
			dispatchAs(t, tt.clusters, []*cluster{c}, ofAuthReviews)
			shared.webhooks.handle("/reviews", deny(http.StatusForbidden, "no reviews here"))
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"},
			}}
			_, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if judged := err != nil && strings.Contains(err.Error(), "no reviews here"); judged != tt.judged {
				t.Errorf("judged: %t, %v", judged, err)
			}
		})
	}
}
