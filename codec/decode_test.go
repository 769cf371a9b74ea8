// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	body := NewBody([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u1","kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"requestKind":{"group":"","version":"v1","kind":"Pod"},"requestResource":{"group":"","version":"v1","resource":"pods"},"name":"n","namespace":"ns","operation":"CREATE","userInfo":{"username":"a\u0062","groups":["g1","g2"],"extra":{"k":["v1","v2"]}},"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"a":[1,2,{"b":null}],"e":{},"f":[]}},"oldObject":null,"dryRun":false,"options":{"kind":"CreateOptions"}}}`), nil)
	r := AcquireReview()
	if err := r.Decode(body); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s %s %s %v %s", r.UID, r.Kind.Kind, r.User.Username, r.User.Groups, r.Object.Labels, r.AppendReview(nil, V1beta1, []byte(`{}`)))
	resp, err := Verify([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u1","allowed":false,"status":{"code":200,"message":"hi\nx"}}}`), Expectation{UID: []byte("u1"), Version: V1})
	t.Logf("%+v %v", resp, err)
	t.Logf("%s", AppendAnswer(nil, V1, []byte("u1"), &resp))
	ReleaseReview(r)
	body.Release()
}
