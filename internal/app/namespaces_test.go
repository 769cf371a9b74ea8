// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const namespaceMetadata = `"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"shop","resourceVersion":"1","labels":{"tier":%q}}`

// startAPI serves the API of a cluster with the namespace shop of tier iron, which
// becomes gold for those who watch once golden is closed.
func (w *world) startAPI(golden <-chan struct{}) *httptest.Server {
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = fmt.Fprintf(rw, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1"},"items":[{`+namespaceMetadata+`}]}`, "iron")
			return
		}
		_ = http.NewResponseController(rw).Flush()
		select {
		case <-golden:
			_, _ = fmt.Fprintf(rw, `{"type":"MODIFIED","object":{`+namespaceMetadata+`}}`+"\n", "gold")
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
		case <-r.Context().Done():
		}
	}))
	api.Config.ErrorLog = log.New(io.Discard, "", 0)
	api.StartTLS()
	w.t.Cleanup(api.Close)
	ca, _ := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}))
	w.write("registry/kubeconfig", fmt.Appendf(nil, `current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: a, user: {token: abc}}]
`, api.URL, ca))
	w.write("registry/cluster.yaml", []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: east}\n"+
		"spec: {authentication: {certificate: {commonNames: [east]}}, kubeconfigFile: kubeconfig}\n"))
	return api
}

// TestNamespacesOfTheCluster is a webhook for gold namespaces, and a namespace
// that becomes gold.
func TestNamespacesOfTheCluster(t *testing.T) {
	w := newWorld(t)
	golden := make(chan struct{})
	w.startAPI(golden)
	w.says(`"allowed":false,"status":{"message":"not in gold namespaces"}`)
	w.configureMore("policy", "  namespaceSelector: {matchLabels: {tier: gold}}\n")
	p := w.start("lameDuck: 0s\n")
	client := w.clientOf(p.awaitReady())
	if v, err := ask(client); err != nil || !v.allowed {
		t.Fatalf("in an iron namespace: %+v, %v", v, err)
	}
	close(golden)
	eventually(t, "the webhook is called", func() bool {
		v, err := ask(client)
		return err == nil && !v.allowed && strings.Contains(v.message, "not in gold namespaces")
	})
	if code, body := p.readiness(); code != http.StatusOK || body != "ok\n" {
		t.Errorf("readiness %d %q", code, body)
	}
}

// TestClusterThatDoesNotAnswer refuses what cannot be decided, and says so.
func TestClusterThatDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.startAPI(nil).Close()
	w.configureMore("policy", "  namespaceSelector: {matchLabels: {tier: gold}}\n")
	p := w.start("lameDuck: 0s\n")
	v, err := ask(w.clientOf(p.awaitReady()))
	if err != nil || v.allowed || !strings.Contains(v.message, `the labels of namespace "shop" are not known: the cluster's API could not be asked`) {
		t.Errorf("%+v, %v", v, err)
	}
	eventually(t, "the readiness says so", func() bool {
		code, body := p.readiness()
		return code == http.StatusOK && strings.HasPrefix(body, "ok\nnamespaces of cluster east: never listed: ")
	})
	eventually(t, "the log says so", func() bool { return w.logged("the namespaces of a cluster are stale") })
	if got := p.scrape(); !strings.Contains(got, `dispatcher_namespaces_stale{cluster="east"} 1.0`) {
		t.Errorf("it is not measured: %s", got)
	}
}

// A token that can no longer be read is a note as long as the last good one does: the
// cluster's namespaces are known, and the process is ready.
func TestCredentialOfAClusterIsGone(t *testing.T) {
	w := newWorld(t)
	w.startAPI(nil)
	kubeconfig, err := os.ReadFile(filepath.Join(w.dir, "registry/kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("registry/token", []byte("abc"))
	w.write("registry/kubeconfig", bytes.Replace(kubeconfig, []byte("token: abc"), []byte("tokenFile: token"), 1))
	p := w.start("lameDuck: 0s\nreloadInterval: 1h\n")
	p.awaitReady()
	eventually(t, "the namespaces are known", func() bool { code, body := p.readiness(); return code == http.StatusOK && body == "ok\n" })
	if got := p.scrape(); !strings.Contains(got, `dispatcher_namespaces_stale{cluster="east"} 0.0`) {
		t.Errorf("they are stale: %s", got)
	}
	w.remove("registry/token")
	want := "ok\nnamespaces of cluster east: watched: the files of its credential are not good; the last good ones are used\n"
	eventually(t, "the readiness says so", func() bool { code, body := p.readiness(); return code == http.StatusOK && body == want })
}

// TestReadinessSaysNothingOfOthers: a cluster's API answers with words that could
// pass for ours.
func TestReadinessSaysNothingOfOthers(t *testing.T) {
	w := newWorld(t)
	api := w.startAPI(nil)
	api.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(rw, `{"kind":"Status","code":403,"reason":"Forbidden","message":"forged\nok\u001b[2J`+strings.Repeat("forged ", 400_000)+`"}`)
	})
	p := w.start("lameDuck: 0s\n")
	p.awaitReady()
	want := "ok\nnamespaces of cluster east: never listed: the API does not let the dispatcher read them\n"
	eventually(t, "the readiness says so", func() bool {
		code, body := p.readiness()
		if strings.Contains(body, "forged") {
			t.Fatalf("%d %.2000q", code, body)
		}
		return code == http.StatusOK && body == want
	})
	eventually(t, "the log says so", func() bool { return w.logged("the namespaces of a cluster are stale") })
	if w.logged(strings.Repeat("forged ", 50)) {
		t.Error("the log has all of it")
	}
}
