// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conformance

import (
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"

	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// costWebhooks is the environment variable that makes this test binary the
// webhooks' process: the directory of their certificate.
const costWebhooks = "CONFORMANCE_COST_WEBHOOKS"

// firstListener is the first file that a child inherits beyond the standard three.
const firstListener = 3

// mostWebhooks is how many webhooks there are.
const mostWebhooks = 20

// webhookProcess serves webhooks that allow, outside the caller's process. Each
// has an address of its own, as webhooks have: a client keeps its idle connections
// by address, so that on a single one many calls at once would shake hands anew.
type webhookProcess struct {
	addresses []string
	pki       *pki.Authority
}

// startWebhooks runs this test binary again, to serve the webhooks. The
// child inherits the listeners, and ends when its standard input does, which it also
// does should this process die.
func startWebhooks(t *testing.T, dir string) *webhookProcess {
	t.Helper()
	authority, err := pki.NewAuthority("conformance authority")
	if err != nil {
		t.Fatal(err)
	}
	w := &webhookProcess{pki: authority}
	issue(t, w.pki, dir, "webhooks")
	var listeners []*os.File
	for range mostWebhooks {
		address, file := listen(t)
		defer file.Close()
		w.addresses, listeners = append(w.addresses, address), append(listeners, file)
	}
	w.start(t, dir, listeners)
	for _, address := range w.addresses {
		w.await(t, address)
	}
	return w
}

// listen returns a listener as a file that a child can inherit.
func listen(t *testing.T) (address string, file *os.File) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	file, err = listener.File()
	if err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String(), file
}

func (w *webhookProcess) start(t *testing.T, dir string, listeners []*os.File) {
	t.Helper()
	var output bytes.Buffer
	cmd := exec.Command(os.Args[0], "-test.run=^TestCost$")
	cmd.Env = append(os.Environ(), costWebhooks+"="+dir)
	cmd.ExtraFiles = listeners
	cmd.Stdout, cmd.Stderr = &output, &output
	alive, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		alive.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the webhooks' process: %v\n%s", err, &output)
		}
	})
}

// await returns when the child shakes hands at an address.
func (w *webhookProcess) await(t *testing.T, address string) {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 30 * time.Second}, "tcp", address, &tls.Config{RootCAs: w.pki.Pool()})
	if err != nil {
		t.Fatalf("the webhooks do not serve: %v", err)
	}
	conn.Close()
}

// hooks returns the first n webhooks, as an operator would register them for Pods.
func (w *webhookProcess) hooks(n int) []admissionregistrationv1.ValidatingWebhook {
	hooks := make([]admissionregistrationv1.ValidatingWebhook, n)
	for i := range hooks {
		var (
			address     = fmt.Sprintf("https://%s/policy-%d", w.addresses[i], i)
			fail        = admissionregistrationv1.Fail
			equivalent  = admissionregistrationv1.Equivalent
			sideEffects = admissionregistrationv1.SideEffectClassNone
			timeout     = int32(10)
			namespaced  = admissionregistrationv1.NamespacedScope
		)
		hooks[i] = admissionregistrationv1.ValidatingWebhook{
			Name:         fmt.Sprintf("policy-%d.cost.example.com", i),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &address, CABundle: w.pki.PEM},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: &namespaced},
			}},
			FailurePolicy:           &fail,
			MatchPolicy:             &equivalent,
			NamespaceSelector:       &metav1.LabelSelector{},
			ObjectSelector:          &metav1.LabelSelector{},
			SideEffects:             &sideEffects,
			TimeoutSeconds:          &timeout,
			AdmissionReviewVersions: []string{"v1"},
		}
	}
	return hooks
}

// serveWebhooks is the child's part. It speaks HTTP/1.1 only: that is what the
// API server asks webhooks for, unless they are on loopback as these are.
func serveWebhooks(t *testing.T, dir string) {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	server := &http.Server{Handler: http.HandlerFunc(allow), Protocols: &protocols, ReadHeaderTimeout: time.Minute}
	ended := make(chan error)
	for i := range mostWebhooks {
		listener, err := net.FileListener(os.NewFile(uintptr(firstListener+i), "listener"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			ended <- server.ServeTLS(listener, filepath.Join(dir, "webhooks.crt"), filepath.Join(dir, "webhooks.key"))
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	server.Close()
	for range mostWebhooks {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}
}

// allow echoes the review's uid, the first in what kube-apiserver writes. It does
// not decode: on a small machine its work would be noise in what is measured.
func allow(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	_, rest, found := bytes.Cut(body, []byte(`"uid":"`))
	uid, _, ended := bytes.Cut(rest, []byte(`"`))
	if err != nil || !found || !ended {
		http.Error(w, "no uid", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"%s","allowed":true}}`, uid)
}
