// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// Variables are what conditions see of one review. They borrow nothing from it,
// and may be shared by all conditions of all webhooks.
type Variables struct {
	object, oldObject, request, cluster any
}

var _ cel.Activation = (*Variables)(nil)

// Input is what Variables are made of.
type Input struct {
	Review        *codec.Review
	Object        []byte // JSON; nil is null
	ClusterName   string
	ClusterLabels map[string]string
}

// NewVariables decodes the objects of a review.
func NewVariables(in Input) (*Variables, error) {
	object, err := decodeObject(in.Object)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	oldObject, err := decodeObject(in.Review.OldObject.Raw)
	if err != nil {
		return nil, fmt.Errorf("oldObject: %w", err)
	}
	request, err := requestOf(in.Review)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	maps.Copy(labels, in.ClusterLabels)
	return &Variables{
		object:    object,
		oldObject: oldObject,
		request:   common.SchemalessTypedToVal(request),
		cluster:   types.DefaultTypeAdapter.NativeToValue(map[string]any{"name": in.ClusterName, "labels": labels}),
	}, nil
}

// ResolveName returns the value of a variable.
func (v *Variables) ResolveName(name string) (any, bool) {
	switch name {
	case plugin.ObjectVarName:
		return v.object, true
	case plugin.OldObjectVarName:
		return v.oldObject, true
	case plugin.RequestVarName:
		return v.request, true
	case clusterVariable:
		return v.cluster, true
	}
	return nil, false
}

// Parent returns nil: there is no enclosing scope.
func (v *Variables) Parent() cel.Activation { return nil }

// decodeObject decodes an object the way apimachinery's unstructured objects
// are: whole numbers as int64.
func decodeObject(raw []byte) (any, error) {
	if raw == nil {
		return nil, nil
	}
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	return types.DefaultTypeAdapter.NativeToValue(object), nil
}

// requestOf is the review's request as kube-apiserver shows it to conditions:
// without uid, object and oldObject.
func requestOf(r *codec.Review) (*admissionv1.AdmissionRequest, error) {
	options, err := optionsOf(r)
	if err != nil {
		return nil, err
	}
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
		Options:            options,
	}, nil
}

func optionsOf(r *codec.Review) (runtime.RawExtension, error) {
	if r.Options == nil {
		return runtime.RawExtension{}, nil
	}
	var content any
	if err := json.Unmarshal(r.Options, &content); err != nil {
		return runtime.RawExtension{}, fmt.Errorf("options: %w", err)
	}
	return runtime.RawExtension{Raw: bytes.Clone(r.Options)}, nil
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
		Extra:    map[string]authenticationv1.ExtraValue{},
	}
	for _, group := range u.Groups {
		info.Groups = append(info.Groups, string(group))
	}
	for _, e := range u.Extra {
		values := authenticationv1.ExtraValue{}
		for _, value := range e.Values {
			values = append(values, string(value))
		}
		info.Extra[string(e.Key)] = values
	}
	return info
}
