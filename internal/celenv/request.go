// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// requestOf is the review's request as kube-apiserver shows it to conditions:
// without uid, object and oldObject. Options are borrowed, the rest is copied.
func requestOf(r *codec.Review) *admissionv1.AdmissionRequest {
	requestKind, requestResource := kind(r.RequestKind), resource(r.RequestResource)
	dryRun := r.DryRun
	return &admissionv1.AdmissionRequest{
		Kind:               kind(r.Kind),
		Resource:           resource(r.Resource),
		SubResource:        string(r.SubResource),
		RequestKind:        &requestKind,
		RequestResource:    &requestResource,
		RequestSubResource: string(r.RequestSubResource),
		Name:               string(r.Name),
		Namespace:          string(r.Namespace),
		Operation:          admissionv1.Operation(r.Operation.String()),
		UserInfo:           userInfo(&r.User),
		DryRun:             &dryRun,
		Options:            runtime.RawExtension{Raw: r.Options},
	}
}

func kind(k codec.GroupVersionKind) metav1.GroupVersionKind {
	return metav1.GroupVersionKind{Group: string(k.Group), Version: string(k.Version), Kind: string(k.Kind)}
}

func resource(r codec.GroupVersionResource) metav1.GroupVersionResource {
	return metav1.GroupVersionResource{Group: string(r.Group), Version: string(r.Version), Resource: string(r.Resource)}
}

func userInfo(u *codec.UserInfo) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{
		Username: string(u.Username),
		UID:      string(u.UID),
		Extra:    make(map[string]authenticationv1.ExtraValue, len(u.Extra)),
	}
	for _, group := range u.Groups {
		info.Groups = append(info.Groups, string(group))
	}
	for _, e := range u.Extra {
		values := make(authenticationv1.ExtraValue, 0, len(e.Values))
		for _, value := range e.Values {
			values = append(values, string(value))
		}
		info.Extra[string(e.Key)] = values
	}
	return info
}
