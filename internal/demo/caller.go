// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

// caller asks the dispatcher the way a cluster's kube-apiserver does: HTTP/1.1
// over TLS with a client certificate, and ?timeout= in whole seconds.
type caller struct {
	base   string // https://host:port
	client *http.Client
}

func newCaller(address string, cfg *tls.Config) *caller {
	cfg.NextProtos = []string{"http/1.1"}
	return &caller{
		base:   "https://" + address,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: cfg}},
	}
}

// answer is what the dispatcher said.
type answer struct {
	status   int
	response *admissionv1.AdmissionResponse // nil unless status is 200
}

func (c *caller) ask(ctx context.Context, cluster, phase string, review []byte) (answer, error) {
	url := fmt.Sprintf("%s/v1/clusters/%s/%s?timeout=10s", c.base, cluster, phase)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(review))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, */*")
	req.Header.Set("User-Agent", "kube-apiserver-admission")
	resp, err := c.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return answer{status: resp.StatusCode}, err
	}
	var got admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &got); err != nil || got.Response == nil {
		return answer{}, fmt.Errorf("the answer is not an AdmissionReview: %w", err)
	}
	return answer{status: resp.StatusCode, response: got.Response}, nil
}

func (c *caller) close() { c.client.CloseIdleConnections() }

// verdict is the answer in a word.
func (a answer) verdict() string {
	switch {
	case a.response == nil:
		return fmt.Sprintf("HTTP %d", a.status)
	case !a.response.Allowed:
		return fmt.Sprintf("denied %d", a.code())
	case len(a.response.Patch) > 0:
		return "patched"
	}
	return "allowed"
}

func (a answer) code() int32 {
	if a.response == nil || a.response.Result == nil {
		return 0
	}
	return a.response.Result.Code
}

// said is what the user reads: the lines of the message, then the warnings.
func (a answer) said() []string {
	if a.response == nil {
		return nil
	}
	var said []string
	if a.response.Result != nil && a.response.Result.Message != "" {
		said = strings.Split(a.response.Result.Message, "\n")
	}
	return append(said, a.response.Warnings...)
}

// differences compares the answer with what is wanted, but for who was called.
func (a answer) differences(want expectation) []string {
	var wrong []string
	check := func(what string, got, want any) {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", what, got, want))
		}
	}
	check("HTTP status", a.status, max(want.status, http.StatusOK))
	if a.response == nil {
		return wrong
	}
	check("allowed", a.response.Allowed, !want.denied)
	check("code", a.code(), want.code)
	check("patched", len(a.response.Patch) > 0, want.patched)
	all := strings.Join(a.said(), "\n")
	for _, text := range want.says {
		check(fmt.Sprintf("%q said", text), strings.Contains(all, text), true)
	}
	return wrong
}
