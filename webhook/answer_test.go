// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

const yamlAllow = "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse: {uid: u-1, allowed: true}\n"

// answerLimit is the limit of an answer's body here, in bytes.
const answerLimit = 64 << 10

// packed is body in a content coding.
func packed(c codec.Coding, body string) string {
	return string(codec.AppendCompressed(nil, c, []byte(body)))
}

// noise is text of n bytes that compresses to half of them: not a byte is as it was.
func noise(n int) string {
	text := make([]byte, n/2)
	_, _ = rand.NewChaCha8([32]byte{}).Read(text)
	return hex.EncodeToString(text)
}

// ok, typed, coded and cut are a 200 with a body: as JSON, as another Content-Type, in
// a Content-Encoding, and one of which the rest could not be read.
func ok(body string) transport.Reply { return typed(codec.MediaTypeJSON, body) }

func typed(kind, body string) transport.Reply {
	return transport.Reply{Status: http.StatusOK, ContentType: []byte(kind), Body: []byte(body), Limit: answerLimit}
}

func coded(coding, body string) transport.Reply {
	r := ok(body)
	r.ContentEncoding = []byte(coding)
	return r
}

func cut(r transport.Reply) transport.Reply {
	r.Cut = &hook.CallError{Cause: hook.BadAnswer, Err: errors.New("it is over the limit")}
	return r
}

func status(code int, body string) transport.Reply {
	r := ok(body)
	r.Status = code
	return r
}

// judge is what a reply means that a webhook gives to the review u-1 in JSON.
func judge(t *testing.T, target *transport.Target, r transport.Reply) transport.Judgment {
	t.Helper()
	return judgeAs(t, codec.Strict, target, r)
}

func judgeAs(t *testing.T, compat codec.Compatibility, target *transport.Target, r transport.Reply) transport.Judgment {
	t.Helper()
	v := view(t)
	defer v.Release()
	m := messageTo(t, &Hook{Target: target, Version: codec.V1, Compat: compat}, v, codec.Form{Version: codec.V1})
	defer m.Release()
	return m.Judge(r)
}

// Words for what an answer comes to, beside the causes.
const (
	allows  = "allows"
	denies  = "denies"
	unclear = "denies, defective as it is" // whatever the failure policy
)

// meaning is a Judgment in a word.
func meaning(j transport.Judgment) string {
	var (
		call *hook.CallError
		bad  *codec.AnswerError
	)
	switch {
	case errors.As(j.Err, &call):
		return string(call.Cause)
	case errors.As(j.Err, &bad) && bad.Denies:
		return unclear
	case j.Err != nil:
		return j.Err.Error()
	case j.Response.Allowed:
		return allows
	}
	return denies
}

// The rows of docs/contract.md that are about an HTTP answer as a whole. What is in its
// review is codec's.
func TestAnswers(t *testing.T) {
	const badAnswer = string(hook.BadAnswer)
	large := strings.Repeat(" ", 1<<20)
	for _, row := range []struct {
		name string
		is   transport.Reply
		want string
	}{
		{"C1 a plain 200", ok(allowBody), allows},
		{"C1 a denial", ok(denyBody), denies},
		{"C1 no content type", typed("", allowBody), allows},
		{"C1 charset", typed("application/json; charset=utf-8", allowBody), allows},
		{"C2 uid of another", ok(strings.Replace(allowBody, "u-1", "u-2", 1)), badAnswer},
		{"C3 a deny with the uid of another", ok(strings.Replace(denyBody, "u-1", "u-2", 1)), unclear},
		{"C10 YAML", typed("application/yaml", yamlAllow), allows},
		{"C10 text/html", typed("text/html", allowBody), allows},
		{"C10 a Content-Type that is none", typed("application/json; ;", allowBody), badAnswer},
		{"C10 a Content-Type that is none, a denial", typed("application/json; ;", denyBody), unclear},
		{"C10 a Content-Type that is none, a denial that is defective", typed("application/json; ;", strings.Replace(denyBody, "u-1", "u-2", 1)), unclear},
		{"C10 a Content-Type that is none, a denial that is cut off", typed("application/json; ;", denyBody[:len(denyBody)-2]), unclear},
		{"C10 a Content-Type that is none, an allow that quotes a denial", typed("application/json; ;", strings.Replace(allowBody, "true", fmt.Sprintf(`true,"warnings":[%q]`, denyBody), 1)), badAnswer},
		{"C10 a Content-Type that is none, an allow that quotes a denial plainly", typed(";", strings.Replace(yamlAllow, "true", "true, warnings: ['allowed: false']", 1)), badAnswer},
		{"C10 a Content-Type that is none, a denial that is defective and in other words", typed(";", strings.Replace(yamlAllow, "u-1, allowed: true", "u-2, allowed: no", 1)), unclear},
		{"C10 Content-Encoding gzip", coded("gzip", packed(codec.Gzip, allowBody)), allows},
		{"C10 Content-Encoding GZIP, a denial", coded("GZIP", packed(codec.Gzip, denyBody)), denies},
		{"C10 Content-Encoding gzip that is not", coded("gzip", allowBody), badAnswer},
		{"C10 Content-Encoding gzip, cut off", coded("gzip", packed(codec.Gzip, allowBody)[:60]), badAnswer},
		{"C10 Content-Encoding gzip, a denial with noise, cut off", coded("gzip", packed(codec.Gzip, denyBody+noise(20_000))[:9_000]), unclear},
		{"C10 Content-Encoding zstd", coded("zstd", packed(codec.Zstd, allowBody)), badAnswer},
		{"C10 Content-Encoding zstd, a denial", coded("zstd", packed(codec.Zstd, denyBody)), unclear},
		{"C10 Content-Encoding zstd, a denial that only its decoder reads", coded("zstd", packed(codec.Zstd, strings.Replace(denyBody, "allowed", `\u0061llowed`, 1))), unclear},
		{"C10 another Content-Encoding, plain", coded("utf-8", allowBody), allows},
		{"C12 a gzip bomb", coded("gzip", packed(codec.Gzip, allowBody+large)), badAnswer},
		{"C12 a gzip bomb that denies", coded("gzip", packed(codec.Gzip, denyBody+large)), unclear},
		{"C12 a zstd bomb that denies", coded("zstd", packed(codec.Zstd, denyBody+large)), unclear},
		{"C12 as much as the limit in gzip", coded("gzip", packed(codec.Gzip, allowBody+large[:answerLimit-len(allowBody)])), allows},
		{"C12 a byte more", coded("gzip", packed(codec.Gzip, allowBody+large[:answerLimit-len(allowBody)+1])), badAnswer},
		{"C12 a beginning that denies", cut(ok(denyBody)), unclear},
		{"C12 a beginning that allows", cut(ok(allowBody)), badAnswer},
		{"C12 a beginning that denies, compressed", cut(coded("GZIP", packed(codec.Gzip, denyBody+noise(200_000))[:50_000])), unclear},
		{"C12 a beginning that allows, compressed", cut(coded("gzip", packed(codec.Gzip, allowBody+noise(200_000))[:50_000])), badAnswer},
		{"C11 204", status(204, ""), string(hook.HTTPStatus)},
		{"C11 empty 200", ok(""), string(hook.HTTPStatus)},
		{"C27 101", status(101, ""), string(hook.HTTPStatus)},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := judge(t, newTarget(t), row.is)
			if got := meaning(j); got != row.want {
				t.Errorf("%s (%v), want %s", got, j.Err, row.want)
			}
		})
	}
	for _, s := range []int{200, 201, 202, 203, 205, 206} {
		t.Run(fmt.Sprintf("C10 status %d with a review", s), func(t *testing.T) {
			for body, want := range map[string]string{allowBody: allows, denyBody: denies} {
				if got := meaning(judge(t, newTarget(t), status(s, body))); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}
		})
	}
	for _, s := range []int{199, 207, 299, 300, 304, 400, 401, 403, 404, 409, 415, 422, 429, 500, 502, 503, 504, 599} {
		t.Run(fmt.Sprintf("C11 F17 status %d with a persuasive body", s), func(t *testing.T) {
			for _, body := range []string{allowBody, denyBody} {
				if got := meaning(judge(t, newTarget(t), status(s, body))); got != string(hook.HTTPStatus) {
					t.Errorf("%s of %s", got, body)
				}
			}
		})
	}
}

// Of an answer that kube-apiserver does not read a denial counts where a webhook is to
// be read strictly; where it is to be read as kube-apiserver does, only if the defect
// is a limit of ours, which kube-apiserver does not have.
func TestDefectsInEachCompatibility(t *testing.T) {
	bomb := strings.Repeat(" ", 1<<20)
	long := strings.Replace(denyBody, "false", `false,"status":{"message":"`+bomb+`"}`, 1)
	none := coded("gzip", packed(codec.Gzip, denyBody+bomb))
	none.ContentType = []byte(";")
	for name, row := range map[string]struct {
		is        transport.Reply
		apiServer string
	}{
		"no Content-Type":                                    {typed(";", denyBody), string(hook.BadAnswer)},
		"a coding that was not asked for":                    {coded("zstd", packed(codec.Zstd, denyBody)), string(hook.BadAnswer)},
		"over the limit, decompressed":                       {coded("gzip", packed(codec.Gzip, denyBody+bomb)), unclear},
		"over the limit, in the middle of a text":            {coded("gzip", packed(codec.Gzip, long)), unclear},
		"over the limit in a coding that was not asked for":  {coded("zstd", packed(codec.Zstd, denyBody+bomb)), string(hook.BadAnswer)},
		"over the limit, decompressed, with no Content-Type": {none, string(hook.BadAnswer)},
	} {
		for compat, want := range map[codec.Compatibility]string{codec.Strict: unclear, codec.APIServer: row.apiServer} {
			if got := meaning(judgeAs(t, compat, newTarget(t), row.is)); got != want {
				t.Errorf("%s, compatibility %d: %s, want %s", name, compat, got, want)
			}
		}
	}
}

// C11: what to do about a redirect is said, without a word of the webhook's.
func TestRedirectsAreTold(t *testing.T) {
	target := resolved(t, transport.TargetSpec{URL: "https://" + serviceName + "/check"})
	for location, want := range map[string]string{
		"/check/":                          "it leads to another spelling of this path, serve it without a slash at its end",
		"//policy.shop.svc/check/":         "it leads to another spelling of this path, serve it without a slash at its end",
		"/secret":                          "it leads to another path of this host, register the URL that answers",
		"https://secret.example.com/v?s#x": "it leads to another host, register the URL that answers",
		"https://u:secret@b.example.com/v": "it leads to another host, register the URL that answers",
		"http://secret.example.com/v":      "the dispatcher does not",
		"%zz":                              "the dispatcher does not",
		"":                                 "answered with HTTP status ",
	} {
		t.Run("C11 to "+location, func(t *testing.T) {
			for _, code := range []int{307, 308} {
				r := status(code, denyBody)
				r.Location = []byte(location)
				err := judge(t, target, r).Err
				if location == "" {
					want += fmt.Sprint(code)
				}
				if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("the error is %v", err)
				}
				want = strings.TrimSuffix(want, fmt.Sprint(code))
			}
		})
	}
	for _, code := range []int{301, 302, 303} { // which kube-apiserver's client does not follow for a POST with a body
		r := status(code, "")
		r.Location = []byte("/elsewhere")
		if err := judge(t, target, r).Err; err == nil || !strings.HasSuffix(err.Error(), fmt.Sprintf("HTTP status %d", code)) {
			t.Errorf("the error is %v", err)
		}
	}
}

// What an answer says that its webhook reads is heard, be it a verdict or not; what it
// leaves out is taken back by a verdict alone.
func TestAnswersAreHeard(t *testing.T) {
	target := newTarget(t)
	isSent := func(want codec.Encoding) {
		t.Helper()
		if got := FormOf(target, codec.V1, Wire{}, 0, time.Now).Encoding; got != want {
			t.Errorf("it is sent %v, want %v", got, want)
		}
	}
	offers := status(500, "")
	offers.AcceptPost = []byte(codec.MediaTypeProtobuf)
	if j := judge(t, target, offers); j.Switch == nil || j.Switch.Err != nil || j.Switch.Reads != "Protobuf" {
		t.Errorf("%+v", j.Switch)
	}
	isSent(codec.Protobuf)
	if j := judge(t, target, status(500, "")); j.Switch != nil {
		t.Errorf("%+v", j.Switch)
	}
	isSent(codec.Protobuf)
	if j := judge(t, target, cut(ok(denyBody))); j.Switch != nil {
		t.Errorf("%+v", j.Switch)
	}
	isSent(codec.Protobuf)
	if j := judge(t, target, ok(allowBody)); j.Switch == nil || j.Switch.Err == nil || j.Switch.Reads != "JSON" {
		t.Errorf("%+v", j.Switch)
	}
	isSent(codec.JSON)
}
