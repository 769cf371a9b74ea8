// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	strictjson "sigs.k8s.io/json"
)

// Param is an object of a kind that the paramKind of a policy names.
type Param struct {
	Origin
	metav1.TypeMeta
	Namespace, Name string
	Labels          map[string]string
	// Cluster is whose it is, by ClusterAnnotation; "": every cluster's.
	Cluster string
	JSON    []byte
}

const (
	// ClusterAnnotation of a Param is the name of the one Cluster that it is for, in place of
	// a Param of the same name that is for all. Of a webhook configuration likewise, but in
	// place of none.
	ClusterAnnotation = "dispatcher.dev/cluster"
	// ParamsAnnotation of a PolicyBinding says where the objects are that its paramRef
	// selects.
	ParamsAnnotation = "dispatcher.dev/params"
	// ParamsInRegistry is the default: in the sources of manifests, as the policies.
	ParamsInRegistry = "Registry"
	// ParamsInCluster is in the cluster that asks.
	ParamsInCluster = "Cluster"
)

// paramKind notes the kind of params that a policy names, if it names one.
func (d *decoded) paramKind(kind *admissionregistrationv1.ParamKind) {
	if kind != nil {
		d.addParamKind(metav1.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind})
	}
}

func (d *decoded) addParamKind(kind metav1.TypeMeta) {
	if d.paramKinds == nil {
		d.paramKinds = map[metav1.TypeMeta]bool{}
	}
	d.paramKinds[kind] = true
}

func (d *decoded) param(u unread) error {
	var head struct {
		Metadata struct {
			Name        string            `json:"name"`
			Namespace   string            `json:"namespace"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(u.doc, &head); err != nil {
		return err
	}
	var whole map[string]any
	if twice, err := strictjson.UnmarshalStrict(u.doc, &whole); err != nil || len(twice) > 0 {
		return runtime.NewStrictDecodingError(append(slices.Clip(twice), notNil(err)...))
	}
	m := &head.Metadata
	if m.Namespace != "" {
		u.Object = u.Kind + "/" + m.Namespace + "/" + m.Name
	}
	d.objects.Params = append(d.objects.Params, Param{
		Origin: u.Origin, TypeMeta: u.TypeMeta, Namespace: m.Namespace, Name: m.Name, Labels: m.Labels,
		Cluster: m.Annotations[ClusterAnnotation], JSON: u.doc,
	})
	return nil
}

func notNil(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}
