// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestRecords(t *testing.T) {
	w := newWorld(t, nil)
	const canary = "canary-1f9c"
	t.Run("B22 B25 each record is one line of JSON, short and without secrets", func(t *testing.T) {
		secret := "Authorization: Bearer " + canary + "\r\n"
		w.isRefused(message{target: "/v1/clusters/b/validate?x=" + canary, extra: secret, body: review("1")}, http.StatusForbidden)
		w.isRefused(message{target: "/\"\\\xe2\x80\xae\x80" + strings.Repeat("x", 1000), extra: secret, body: canary}, http.StatusNotFound)
		w.isRefused(message{headers: secret + "Content-Type: application/json\r\nno colon " + canary + "\r\n", body: canary}, http.StatusBadRequest)
		w.isRefused(message{body: `{"` + canary + `":}`}, http.StatusBadRequest)
		w.dialPlain().send(text(canary + "\r\n\r\n"))
		for _, line := range w.logs.lines() {
			var record struct{ Level, Msg, Reason, Remote, Path string }
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			if record.Level != "WARN" || !strings.HasPrefix(record.Remote, "127.0.0.1:") {
				t.Errorf("record %+v", record)
			}
			if strings.Contains(line, canary) || len(line) > 1000 {
				t.Errorf("record %s", line)
			}
		}
	})
	t.Run("B25 a record says who asked for what", func(t *testing.T) {
		for _, want := range []string{
			`"method":"POST","path":"/v1/clusters/b/validate","certificate":"CN=a","status":403,"reason":"the credentials are not those of this cluster"`,
			`"method":"POST","path":"/v1/clusters/a/validate","certificate":"CN=a","cluster":"a","status":400,`,
		} {
			if log := strings.Join(w.logs.lines(), "\n"); !strings.Contains(log, want) {
				t.Errorf("no %s in\n%s", want, log)
			}
		}
	})
	t.Run("B25 a key that the sender made up is told to the sender alone", func(t *testing.T) {
		got := w.isRefused(message{body: `{"` + canary + `":1,"` + canary + `":2}`}, http.StatusBadRequest)
		if log := strings.Join(w.logs.lines(), "\n"); !strings.Contains(got.body, canary) || strings.Contains(log, canary) {
			t.Errorf("told %q, the log:\n%s", got.body, log)
		}
	})
	t.Run("a flood of refusals is counted, not recorded", func(t *testing.T) {
		before := len(w.logs.lines())
		for range 30 {
			w.isRefused(message{method: "GET"}, http.StatusMethodNotAllowed)
		}
		if n := len(w.logs.lines()) - before; n > 10 {
			t.Errorf("%d records", n)
		}
	})
}
