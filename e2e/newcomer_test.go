// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
)

// What a newcomer applies. docs/install.md has the same, with addresses of its own.
const (
	newcomersCluster = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east, labels: {env: dev}}
spec: {authentication: {certificate: {commonNames: [east]}}}
`
	newcomersBinding = `apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: images}
spec: {webhooks: ["image-policy/*"], mode: Enforce}
`
	newcomersWebhook = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: image-policy}
webhooks:
- name: images.policy.example.com
  clientConfig: {url: "$URL/newcomer", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`
)

// newcomer is somebody who installs a release. What they type and see is kept.
type newcomer struct {
	t          *testing.T
	home       *cluster // where the release is
	dir        string   // the files of the pod
	admin      string
	transcript strings.Builder
}

// TestNewcomer: from the rendered chart, through objects in an API, to a pod that is
// denied in another cluster. There is no kubelet: the real binaries are run with the
// arguments, files and rights of the rendered Deployment, but for addresses.
func TestNewcomer(t *testing.T) {
	progress("%s", t.Name())
	home, err := shared.startCluster(clusterOptions{name: "newcomer"})
	t.Cleanup(func() { home.close() })
	if err != nil {
		t.Fatal(err)
	}
	n := &newcomer{t: t, home: home, dir: t.TempDir()}
	defer func() { t.Logf("the transcript:\n%s", n.transcript.String()) }()

	n.kubectl(home, "", "apply", "-k", "../deploy/kustomize/api")
	n.kubectl(home, "", "wait", "--for=condition=Established", "crd", "--all")
	served := n.startPod()
	n.kubectl(home, newcomersCluster, "apply", "-f", "-")
	n.kubectl(home, imported(t, newcomersWebhook), "apply", "-f", "-")
	n.kubectl(home, newcomersBinding, "apply", "-f", "-")
	shared.webhooks.handle("/newcomer", deny(http.StatusForbidden, "an image has the tag :latest"))
	address, _, err := served.Serving()
	if err != nil {
		t.Fatal(err)
	}
	shared.front.point(address)
	t.Cleanup(func() { shared.front.point("") })

	var registration string
	eventually(t, "the webhook is part of the registration", func() error {
		text, err := exec.Command(shared.programs.dispatcher, "registration", "--config", filepath.Join(n.dir, "config/dispatcher.yaml"), "--cluster", "east").Output()
		if registration = string(text); err == nil && !strings.Contains(registration, "pods") {
			err = fmt.Errorf("it is\n%s", registration)
		}
		return err
	})
	n.note("$ dispatcher registration --config dispatcher.yaml --cluster east | kubectl --context east apply -f -")
	shared.east.apply(t, registration)
	eventually(t, "a pod is denied", func() error {
		said, err := n.run(shared.east, "", "run", "web", "--image=nginx:latest", "--dry-run=server")
		if err == nil || !strings.Contains(said, `admission webhook "images.policy.example.com" denied the request: an image has the tag :latest`) {
			return fmt.Errorf("it is %w: %s", err, said)
		}
		n.note("$ kubectl --context east run web --image=nginx:latest\n" + strings.TrimSpace(said))
		return nil
	})
	text, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(n.transcript.String()) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok && !strings.Contains(string(text), command) {
			t.Errorf("docs/install.md does not have %q", command)
		}
	}
}

func (n *newcomer) note(text string) { fmt.Fprintln(&n.transcript, text) }

// kubectl runs kubectl, which must succeed, and notes both.
func (n *newcomer) kubectl(c *cluster, in string, args ...string) {
	n.t.Helper()
	said, err := n.run(c, in, args...)
	n.note("$ kubectl " + strings.ReplaceAll(strings.Join(args, " "), "../", ""))
	n.note(strings.TrimSpace(said))
	if err != nil {
		n.t.Fatalf("kubectl %v: %v: %s", args, err, said)
	}
}

func (n *newcomer) run(c *cluster, in string, args ...string) (string, error) {
	cmd := exec.Command(c.programs.kubectl, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(in)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	return said.String(), err
}

// startPod does what a kubelet would with the Deployment that the API has now, and returns
// the process of its container.
func (n *newcomer) startPod() *process.Process {
	n.t.Helper()
	const name = "admission-dispatcher"
	deployment, err := n.home.client.AppsV1().Deployments(name).Get(n.t.Context(), name, getOptions)
	if err != nil {
		n.t.Fatal(err)
	}
	n.mount(deployment)
	token, err := n.home.client.CoreV1().ServiceAccounts(name).CreateToken(n.t.Context(), deployment.Spec.Template.Spec.ServiceAccountName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	ca := filepath.Join(n.home.dir, "certificates", "apiserver.crt")
	n.write("kubeconfig", fmt.Sprintf(kubeconfig, n.home.config.Host, ca, token.Status.Token))
	mirror := deployment.Spec.Template.Spec.InitContainers[0]
	n.start(filepath.Join(filepath.Dir(shared.programs.mirror), mirror.Command[0]), append(mirror.Args, "--kubeconfig="+filepath.Join(n.dir, "kubeconfig"))...)
	return n.start(shared.programs.dispatcher, deployment.Spec.Template.Spec.Containers[0].Args...)
}

// mount writes what the volumes of the pod would have.
func (n *newcomer) mount(deployment *appsv1.Deployment) {
	n.t.Helper()
	port, err := freePort()
	if err != nil {
		n.t.Fatal(err)
	}
	n.admin = "127.0.0.1:" + port
	configuration, err := n.home.client.CoreV1().ConfigMaps(deployment.Namespace).Get(n.t.Context(), deployment.Spec.Template.Spec.Volumes[0].ConfigMap.Name, getOptions)
	if err != nil {
		n.t.Fatal(err)
	}
	n.write("config/dispatcher.yaml", strings.NewReplacer("listen: :8081", "listen: "+n.admin, "listen: :8443", "listen: 127.0.0.1:0", "lameDuck: 95s", "lameDuck: 1s").
		Replace(configuration.Data["dispatcher.yaml"])+
		fmt.Sprintf("allowedNetworks: [\"127.0.0.0/8\"]\nregistration: {url: \"https://%s\", caFile: ../authorities/clients.crt}\n", shared.front.address()))
	for from, to := range map[string]string{"serving.crt": "tls/tls.crt", "serving.key": "tls/tls.key", "ca.crt": "authorities/clients.crt"} {
		text, err := os.ReadFile(shared.path(from))
		if err != nil {
			n.t.Fatal(err)
		}
		n.write(to, string(text))
		if from == "ca.crt" {
			n.write("authorities/operators.crt", string(text))
		}
	}
}

func (n *newcomer) write(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// start starts a container, whose paths and ports are those of this host.
func (n *newcomer) start(program string, args ...string) *process.Process {
	n.t.Helper()
	own := strings.NewReplacer("/etc/dispatcher/", n.dir+"/", "127.0.0.1:8081", n.admin)
	for i := range args {
		args[i] = own.Replace(args[i])
	}
	p, err := start(n.dir, program, args...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if n.t.Failed() {
			n.t.Logf("the log of %s ends:\n%s", filepath.Base(program), p.Tail())
		}
		p.Kill()
	})
	return p
}
