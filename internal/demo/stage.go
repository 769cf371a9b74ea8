// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/admission-dispatcher/dispatcher/examples/quickstart"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/tracing"
)

// webhookName is the server name of the sample webhooks' certificate: the one
// that the generated binding asks for.
const webhookName = "webhooks.demo.example.com"

// stage is what the dispatcher finds around it: a directory with certificates
// and manifests, and the sample webhooks.
type stage struct {
	dir        string
	configFile string
	authority  *pki.Authority
	webhooks   *webhooks
	server     *http.Server
	spans      *tracing.Recorder
}

// callers are how the clusters of examples/quickstart/clusters.yaml prove who
// they are: each in another way.
var callers = map[string]pki.Subject{
	"dev":     {CommonName: "kube-apiserver.dev.example.com"},
	"staging": {CommonName: "kube-apiserver", DNSNames: []string{"kube-apiserver.staging.example.com"}},
	"prod":    {CommonName: "kube-apiserver", URIs: []string{"spiffe://example.com/cluster/prod/kube-apiserver"}},
}

// newStage fills dir and starts the sample webhooks.
func newStage(dir string) (*stage, error) {
	authority, err := pki.NewAuthority("dispatcher demo")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, authority: authority, webhooks: newWebhooks()}
	address, err := s.startWebhooks()
	if err != nil {
		return nil, err
	}
	if err := s.writeFiles(address); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

func (s *stage) startWebhooks() (address string, err error) {
	pair, err := s.authority.Issue(pki.Subject{CommonName: webhookName, DNSNames: []string{webhookName}})
	if err != nil {
		return "", err
	}
	certificate, err := pair.TLS()
	if err != nil {
		return "", err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s.server = &http.Server{
		Handler:           s.webhooks.handler(),
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() { _ = s.server.ServeTLS(ln, "", "") }()
	return ln.Addr().String(), nil
}

func (s *stage) close() {
	ctx, cancel := context.WithTimeout(context.Background(), hang+time.Second)
	defer cancel()
	_ = s.server.Shutdown(ctx)
}

// writeFiles writes certificates, the example manifests as they are, the one
// binding that the demo adds, and the process's configuration.
func (s *stage) writeFiles(webhookAddress string) error {
	if err := os.Mkdir(s.path("registry"), 0o700); err != nil {
		return err
	}
	if err := s.writeCertificates(); err != nil {
		return err
	}
	manifests, err := fs.Glob(quickstart.Manifests, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range manifests {
		data, err := quickstart.Manifests.ReadFile(name)
		if err != nil {
			return err
		}
		if err := s.write(filepath.Join("registry", name), data); err != nil {
			return err
		}
	}
	if err := s.write("registry/demo-endpoints.yaml", fmt.Appendf(nil, binding, webhookAddress, webhookName)); err != nil {
		return err
	}
	s.configFile = s.path("dispatcher.yaml")
	return s.write("dispatcher.yaml", []byte(configuration))
}

func (s *stage) writeCertificates() error {
	if err := s.write("ca.crt", s.authority.PEM); err != nil {
		return err
	}
	subjects := map[string]pki.Subject{
		"serving": pki.OnLoopback("dispatcher", "localhost"),
	}
	for cluster, subject := range callers {
		subjects[cluster] = subject
	}
	for name, subject := range subjects {
		pair, err := s.authority.Issue(subject)
		if err != nil {
			return err
		}
		if err := pair.Write(s.dir, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) write(name string, data []byte) error {
	return os.WriteFile(s.path(name), data, 0o600)
}

// caller returns the kube-apiserver of a cluster.
func (s *stage) caller(address, cluster string) (*caller, error) {
	certificate, err := tls.LoadX509KeyPair(s.path(cluster+".crt"), s.path(cluster+".key"))
	if err != nil {
		return nil, err
	}
	return newCaller(address, &tls.Config{
		MinVersion:   tls.VersionTLS12,
		RootCAs:      s.authority.Pool(),
		Certificates: []tls.Certificate{certificate},
	}), nil
}

// binding points the Service references of the example manifests at the sample
// webhooks, and says whom to trust there.
const binding = `# Generated: the Services of the example manifests do not exist here.
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata:
  name: demo-endpoints
spec:
  webhooks: ["*/*"]
  endpoints:
    - address: %q
      caFile: ../ca.crt
      serverName: %q
`

const configuration = `apiVersion: dispatcher.dev/v1alpha1
kind: DispatcherConfiguration
listen: 127.0.0.1:0
tls:
  certFile: serving.crt
  keyFile: serving.key
  clientCAFile: ca.crt
admin:
  listen: 127.0.0.1:0
sources:
  - directory: registry
fileRoots: [.]
# The sample webhooks are on loopback, which is forbidden otherwise.
allowedNetworks: ["127.0.0.0/8"]
# A demo has no callers that could lose a call.
lameDuck: 0s
`
