// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// tokens of the users of every cluster. The first is a superuser.
const tokens = `admin-token,admin,1,system:masters
user-token,user,2,developers
node-token,system:node:n1,3,system:nodes
dispatcher-token,admission-dispatcher,4,
policy-token,policy-tester,5,system:masters
`

// cluster is one kube-apiserver.
type cluster struct {
	name       string
	dir        string
	process    *process.Process
	config     *rest.Config // of the superuser
	client     kubernetes.Interface
	objects    dynamic.Interface
	kubeconfig string // the same for kubectl
	audit      string // file
	asks       string // the namespace of what awaitCalls creates
	programs   programs
}

type clusterOptions struct {
	name      string
	caller    string   // the Cluster that it is to the dispatcher; empty: it does not authenticate
	manifests string   // directory of the static registration; empty: none
	admission string   // an AdmissionConfiguration, of a cluster that does not authenticate
	flags     []string // more of them
}

// startCluster starts a kube-apiserver with a directory and an etcd prefix of its
// own and returns when it is ready.
func (w *world) startCluster(o clusterOptions) (*cluster, error) {
	c := &cluster{name: o.name, dir: filepath.Join(w.dir, o.name), programs: w.programs, asks: "default"}
	c.audit = filepath.Join(c.dir, "audit.log")
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	if err := c.write("audit.yaml", auditPolicy); err != nil {
		return nil, err
	}
	flags := append([]string{
		"--etcd-servers", w.etcdURL, "--etcd-prefix", "/" + o.name,
		"--bind-address", "127.0.0.1", "--secure-port", port, "--cert-dir", "certificates",
		"--service-account-issuer", "https://" + o.name + ".example.com",
		"--service-account-key-file", w.path("service-accounts.crt"), "--service-account-signing-key-file", w.path("service-accounts.key"),
		"--token-auth-file", w.path("tokens.csv"), "--authorization-mode", "RBAC",
		"--disable-admission-plugins", "ServiceAccount", "--service-cluster-ip-range", "10.0.0.0/24",
		"--audit-policy-file", "audit.yaml", "--audit-log-path", c.audit, "--admission-control-config-file", "admission.yaml",
	}, o.flags...)
	if o.caller != "" {
		if err := w.writeCaller(c, o); err != nil {
			return nil, err
		}
	} else if err := c.write("admission.yaml", cmp.Or(o.admission, noAdmission)); err != nil {
		return nil, err
	}
	if c.process, err = start(c.dir, w.programs.apiserver, flags...); err != nil {
		return nil, err
	}
	if err := c.connect(port); err != nil {
		return c, err
	}
	return c, c.process.Until("being ready", c.ready)
}

// noAdmission configures nothing.
const noAdmission = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
`

// auditPolicy has the patches of webhooks too for one user.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Request, users: [policy-tester]}, {level: Metadata}]
`

// connect makes the clients.
func (c *cluster) connect(port string) error {
	ca := filepath.Join(c.dir, "certificates", "apiserver.crt")
	if err := c.process.Until("having a certificate", func() bool { _, err := os.Stat(ca); return err == nil }); err != nil {
		return err
	}
	c.config = &rest.Config{
		Host:            "https://127.0.0.1:" + port,
		BearerToken:     "admin-token",
		TLSClientConfig: rest.TLSClientConfig{CAFile: ca},
		QPS:             -1,
		WarningHandler:  rest.NoWarnings{},
	}
	c.kubeconfig = filepath.Join(c.dir, "kubeconfig")
	if err := c.write("kubeconfig", fmt.Sprintf(kubeconfig, c.config.Host, ca, "admin-token")); err != nil {
		return err
	}
	var err error
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	c.objects, err = dynamic.NewForConfig(c.config)
	return err
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: default}}]
current-context: x
`

// as returns a client of another user.
func (c *cluster) as(token string) *rest.Config {
	config := rest.CopyConfig(c.config)
	config.BearerToken = token
	return config
}

// ready reports whether the apiserver has started, with the namespaces that it makes.
func (c *cluster) ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var status int
	c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
	if status != http.StatusOK {
		return false
	}
	for _, name := range []string{"default", "kube-system", "kube-node-lease"} {
		if _, err := c.client.CoreV1().Namespaces().Get(ctx, name, getOptions); err != nil {
			return false
		}
	}
	return true
}

func (c *cluster) write(name, text string) error {
	return os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600)
}

func (c *cluster) close() {
	if c != nil {
		c.process.Kill() // in its own time it would take ten seconds
	}
}
