// SPDX-License-Identifier: Apache-2.0

package script

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const name = "policy.example.com"

func serve(t *testing.T) (*Server, *http.Client) {
	t.Helper()
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(pki.OnLoopback("webhook"))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(Config{Name: "one", Start: time.Now(), Certificate: certificate, Truths: map[string]func(string) history.Answer{name: Mutating(name)}})
	t.Cleanup(s.Close)
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, // a test of answers
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(client.CloseIdleConnections)
	return s, client
}

func ask(t *testing.T, s *Server, client *http.Client, uid string) (int, string) {
	t.Helper()
	resp, err := client.Post("https://"+s.Address()+"/"+name, "application/json",
		strings.NewReader(fmt.Sprintf(`{"request":{"uid":%q,"resource":{"resource":"pods"},"object":{"a":1}}}`, uid)))
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body) // half an answer is one of the forms
	return resp.StatusCode, string(body)
}

// A proper answer is the truth that anybody can compute.
func TestTruth(t *testing.T) {
	s, client := serve(t)
	denied := 0
	const reviews = 50
	for i := range reviews {
		uid := fmt.Sprintf("uid-%d", i)
		want := Mutating(name)(uid)
		_, body := ask(t, s, client, uid)
		var got struct {
			Response struct {
				UID     string
				Allowed bool
				Patch   []byte
				Status  struct{ Message string }
			}
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err, body)
		}
		r := got.Response
		if r.UID != uid || r.Allowed != want.Allowed || string(r.Patch) != string(want.Patch) || r.Status.Message != want.Message {
			t.Errorf("%s: %s, want %+v", uid, body, want)
		}
		if !r.Allowed {
			denied++
		}
	}
	if denied == 0 || denied == reviews {
		t.Errorf("%d of %d are denied", denied, reviews)
	}
	for _, a := range s.Attempts() {
		if !a.Intact || a.Webhook != name || a.BodyHash != history.Hash([]byte(`{"a":1}`)) || a.Answered < a.Arrived {
			t.Errorf("%+v", a)
		}
	}
}

// What is wrong with an answer is wrong, and no record says otherwise.
func TestForms(t *testing.T) {
	s, client := serve(t)
	for form, want := range map[Form]struct {
		status int
		body   string
	}{
		OtherUID:   {200, "00000000-0000-0000-0000-000000000000"},
		NotJSON:    {200, "no"},
		Redirect:   {307, ""},
		Persuasive: {503, `"allowed":true`},
		RetryLater: {429, ""},
	} {
		s.Behave(name, Behaviour{Form: form, Status: 503})
		if status, body := ask(t, s, client, "u"); status != want.status || !strings.Contains(body, want.body) {
			t.Errorf("form %d: %d %s", form, status, body)
		}
	}
	for _, a := range s.Attempts() {
		if a.Intact {
			t.Errorf("intact: %+v", a)
		}
	}
}

// A server shows the certificate that it was given last, also to who knows a session.
func TestPresent(t *testing.T) {
	s, client := serve(t)
	security := client.Transport.(*http.Transport).TLSClientConfig
	security.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"webhook", "another"} {
		if name != "webhook" {
			pair, err := authority.Issue(pki.Subject{CommonName: name})
			if err != nil {
				t.Fatal(err)
			}
			c, err := pair.TLS()
			if err != nil {
				t.Fatal(err)
			}
			s.Present(c)
		}
		resp, err := client.Post("https://"+s.Address()+"/"+name, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		client.CloseIdleConnections()
		if shown := resp.TLS.PeerCertificates[0].Subject.CommonName; shown != name {
			t.Errorf("shown %q, not %q", shown, name)
		}
	}
}

// A path with a version answers with what follows from both, and the attempt has it.
func TestVersion(t *testing.T) {
	s, client := serve(t)
	at := name + "/7"
	for i := range 20 {
		uid := fmt.Sprintf("uid-%d", i)
		resp, err := client.Post("https://"+s.Address()+"/"+at, "application/json", strings.NewReader(fmt.Sprintf(`{"request":{"uid":%q,"object":{}}}`, uid)))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := Validating(at)(uid); !strings.Contains(string(body), want.Message) || strings.Contains(string(body), `"allowed":true`) != want.Allowed {
			t.Errorf("%s: %s, want %+v", uid, body, want)
		}
	}
	if a := s.Attempts()[0]; a.Webhook != name || a.Version != "7" || !s.Asked(at) || s.Asked(name) {
		t.Errorf("%+v", a)
	}
}
