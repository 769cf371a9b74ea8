// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// requestOf is the review's request as kube-apiserver shows it to conditions:
// without uid, object and oldObject, and with the resource as the user sent it, where
// a webhook gets the converted one. The kind is the converted one in both. Options
// are borrowed, the rest is copied.
func requestOf(r *codec.Review) *admissionv1.AdmissionRequest {
	var c copier
	c.text.Grow(usualText)
	requestKind, requestResource := c.kind(r.RequestKind), c.resource(r.RequestResource)
	dryRun := r.DryRun
	return &admissionv1.AdmissionRequest{
		Kind:               c.kind(r.Kind),
		Resource:           requestResource,
		SubResource:        c.string(r.RequestSubResource),
		RequestKind:        &requestKind,
		RequestResource:    &requestResource,
		RequestSubResource: c.string(r.RequestSubResource),
		Name:               c.string(r.Name),
		Namespace:          c.string(r.Namespace),
		Operation:          admissionv1.Operation(r.Operation.String()),
		UserInfo:           c.userInfo(&r.User),
		DryRun:             &dryRun,
		Options:            runtime.RawExtension{Raw: r.Options},
	}
}

// usualText is about as long as all names of a request are together.
const usualText = 384

// copier copies all that it is given into one piece of memory, if there is room,
// in place of one for each.
type copier struct{ text strings.Builder }

func (c *copier) string(b []byte) string {
	start := c.text.Len()
	c.text.Write(b)
	return c.text.String()[start:]
}

func (c *copier) kind(k codec.GroupVersionKind) metav1.GroupVersionKind {
	return metav1.GroupVersionKind{Group: c.string(k.Group), Version: c.string(k.Version), Kind: c.string(k.Kind)}
}

func (c *copier) resource(r codec.GroupVersionResource) metav1.GroupVersionResource {
	return metav1.GroupVersionResource{Group: c.string(r.Group), Version: c.string(r.Version), Resource: c.string(r.Resource)}
}

func (c *copier) userInfo(u *codec.UserInfo) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: c.string(u.Username), UID: c.string(u.UID), Extra: c.extra(u.Extra)}
	if len(u.Groups) > 0 {
		info.Groups = c.strings(u.Groups)
	}
	return info
}

func (c *copier) extra(list []codec.ExtraValue) map[string]authenticationv1.ExtraValue {
	if len(list) == 0 {
		return nil
	}
	extra := make(map[string]authenticationv1.ExtraValue, len(list))
	for _, e := range list {
		extra[c.string(e.Key)] = c.strings(e.Values)
	}
	return extra
}

func (c *copier) strings(list [][]byte) []string {
	copies := make([]string, len(list))
	for i, b := range list {
		copies[i] = c.string(b)
	}
	return copies
}
