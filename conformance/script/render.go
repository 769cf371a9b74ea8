// SPDX-License-Identifier: Apache-2.0

package script

import (
	"github.com/admission-dispatcher/dispatcher/internal/harness/scripted"

	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"
)

// call is one request to a scripted webhook.
type call struct {
	*scripted.Call
	apiVersion string
	uid        string
	seen       string // in which form the review came
}

// play answers c by s.
func (s Script) play(c call) {
	switch s.Form {
	case Status400:
		c.Send(http.StatusBadRequest, s.review(c))
	case Status404:
		http.NotFound(c, c.Request)
	case Status500:
		http.Error(c, "scripted failure", http.StatusInternalServerError)
	case Status503:
		c.Send(http.StatusServiceUnavailable, s.review(c))
	case Status201:
		c.Send(http.StatusCreated, s.review(c))
	case Status204:
		c.WriteHeader(http.StatusNoContent)
	case NoLocation:
		c.WriteHeader(http.StatusFound)
	case Redirect:
		c.Header().Set("Location", allowPath)
		c.WriteHeader(http.StatusTemporaryRedirect)
	case Close:
		panic(http.ErrAbortHandler) // net/http closes the connection
	case Hang:
		c.Hang()
	case GZIP:
		s.sendCompressed(c)
	default:
		c.Send(http.StatusOK, s.body(c))
	}
}

func (s *Script) sendCompressed(c call) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(s.review(c)) // a bytes.Buffer takes everything
	_ = w.Close()
	c.Header().Set("Content-Encoding", "gzip")
	c.Send(http.StatusOK, out.Bytes())
}

// body is what a webhook sends with status 200.
func (s *Script) body(c call) []byte {
	switch s.Form {
	case EmptyBody:
		return nil
	case Garbage:
		return []byte("webhook is not in the mood")
	case Truncated:
		whole := s.review(c)
		return whole[:len(whole)*2/3]
	case Trailing:
		return append(s.review(c), "{}"...)
	case YAML:
		text, _ := yaml.JSONToYAML(s.review(c)) // JSON of our own
		return text
	case InvalidUTF8:
		return bytes.Replace(s.review(c), []byte("{"), []byte("{\"note\":\"\xff\","), 1)
	case FiveMegabytes:
		return bytes.Replace(s.review(c), []byte("{"), fmt.Appendf(nil, "{%s", strings.Repeat(" ", 5<<20)), 1)
	case ResponseTwice:
		r := s.response(c, c.uid)
		return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"AdmissionReview","response":{"uid":%q,"allowed":true},"response":%s}`, c.apiVersion, c.uid, r)
	}
	return s.review(c)
}

// review is the AdmissionReview, with what the Form changes in it.
func (s *Script) review(c call) []byte {
	apiVersion, kind, uid := c.apiVersion, "AdmissionReview", c.uid
	switch s.Form {
	case WrongUID:
		uid = "00000000-0000-0000-0000-000000000000"
	case WrongKind:
		kind = "Status"
	case WrongVersion:
		apiVersion = "admission.k8s.io/v9"
	case OtherVersion:
		apiVersion = other(apiVersion)
	case NoResponse:
		return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q}`, apiVersion, kind)
	case NullResponse:
		return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"response":null}`, apiVersion, kind)
	}
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"response":%s}`, apiVersion, kind, s.response(c, uid))
}

func other(apiVersion string) string {
	if strings.HasSuffix(apiVersion, "/v1") {
		return apiVersion + "beta1"
	}
	return strings.TrimSuffix(apiVersion, "beta1")
}

// response is the response with what the Form changes in it.
func (s *Script) response(c call, uid string) []byte {
	r := s.answer(uid)
	if s.TellsForm && c.seen != "" {
		annotations := map[string]string{"seen": c.seen}
		maps.Copy(annotations, s.Annotations)
		r["auditAnnotations"] = annotations
	}
	switch s.Form {
	case NoUID:
		delete(r, "uid")
	case WrongAllowed:
		r["allowed"] = fmt.Sprint(s.Allowed)
	case AllowedAbsent:
		delete(r, "allowed")
	case AllowedNull:
		r["allowed"] = nil
	case CaseVariant:
		delete(r, "allowed")
		r["Allowed"] = s.Allowed
	}
	s.breakPatch(r)
	text, _ := json.Marshal(r) // of our own values
	return s.repeatAllowed(text)
}

func (s *Script) breakPatch(r map[string]any) {
	set := func(patch, patchType any) { r["patch"], r["patchType"] = patch, patchType }
	switch s.Form {
	case BadBase64:
		set("***", "JSONPatch")
	case BadPatch:
		set([]byte(`[{`), "JSONPatch")
	case PatchNoType:
		delete(r, "patchType")
	case TypeNoPatch:
		delete(r, "patch")
		r["patchType"] = "JSONPatch"
	case OtherPatchType:
		set([]byte(`[{"op":"add","path":"/metadata/labels","value":{"tier":"b"}}]`), "MergePatch")
	case EmptyPatch:
		set([]byte(`[]`), "JSONPatch")
	case NullPatch:
		set([]byte(`null`), "JSONPatch")
	case IdentityPatch:
		set([]byte(`[{"op":"replace","path":"/metadata/namespace","value":"elsewhere"}]`), "JSONPatch")
	case UnknownOperation:
		set([]byte(`[{"op":"merge","path":"/metadata/labels","value":{"tier":"b"}}]`), "JSONPatch")
	case PatchBomb:
		const test = `{"op":"test","path":"/none","value":null}`
		set([]byte("["+strings.Repeat(test+",", 2000)+test+"]"), "JSONPatch")
	}
}

func (s *Script) repeatAllowed(text []byte) []byte {
	var first, last string
	switch s.Form {
	case AllowedTwice:
		first, last = "true", "true"
	case AllowedThenNot:
		first, last = "true", "false"
	case NotThenAllowed:
		first, last = "false", "true"
	default:
		return text
	}
	was := fmt.Appendf(nil, `"allowed":%v`, s.Allowed)
	return bytes.Replace(text, was, fmt.Appendf(nil, `"allowed":%s,"allowed":%s`, first, last), 1)
}

// String is s on one line.
func (s Script) String() string {
	text, _ := json.Marshal(s) // of our own values
	return string(text)
}
