// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
)

const (
	scrapeInterval = time.Second      // as in testdata/live/prometheus.yaml
	patience       = 90 * time.Second // bounds every wait
)

// prometheus is a server of its own.
type prometheus struct {
	t       *testing.T
	address string
}

var listening = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

// startPrometheus runs the program on what dir holds: prometheus.yaml and rules.
func startPrometheus(t *testing.T, program, dir string) *prometheus {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	server, err := process.Start(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	address, err := server.Await(func(line string) string {
		if found := listening.FindStringSubmatch(line); found != nil {
			return found[1]
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return &prometheus{t: t, address: address}
}

// get asks the API, and returns nothing while it is not ready.
func (p *prometheus) get(path string, parameters url.Values, data any) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+p.address+"/api/v1/"+path+"?"+parameters.Encode(), http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		p.t.Fatal(err)
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		return
	}
	answer := struct{ Data any }{data}
	if err := json.Unmarshal(body.Bytes(), &answer); err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %v: %s, %v\n%s", path, parameters, resp.Status, err, &body)
	}
}

// shows reports whether an expression has a value now that can be drawn.
func (p *prometheus) shows(expr string) bool {
	p.t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.get("query", url.Values{"query": {expr}}, &data)
	for _, series := range data.Result {
		if series.Value[1] != "NaN" {
			return true
		}
	}
	return false
}

// labelValues returns the values of a label in the series that fit.
func (p *prometheus) labelValues(label, selector string) []string {
	p.t.Helper()
	var list []string
	p.get("label/"+label+"/values", url.Values{"match[]": {selector}}, &list)
	return list
}

// alerts returns the state of each alert that is pending or firing: firing where
// it is so for any labels.
func (p *prometheus) alerts() map[string]string {
	p.t.Helper()
	var data struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	p.get("alerts", nil, &data)
	states := map[string]string{}
	for _, a := range data.Alerts {
		name := a.Labels["alertname"]
		states[name] = min(a.State, cmp.Or(states[name], a.State)) // firing is before pending
	}
	return states
}
