// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/exempt"
)

// exemptKind is the bypass of resources that the cluster's kube-apiserver itself
// never sends to webhooks. It cannot be configured away.
const exemptKind = "exempt-kind"

// bypass returns the rule by which a request is not dispatched at all. It looks
// at fields only that the request's user cannot choose.
func bypass(req Request) (rule string, ok bool) {
	if exempt.ConfiguresAdmission(req.Review) || exempt.IsAuthReview(req.Review) && req.Cluster.ExemptsAuthReviews() {
		return exemptKind, true
	}
	return req.Cluster.Bypass.Match(req.Review)
}

// bypassed is the Verdict of a bypass: allowed, and visibly so.
func bypassed(rule, snapshot string) Verdict {
	return Verdict{
		Bypass: rule,
		Response: codec.Response{
			Allowed: true,
			Annotations: []codec.Annotation{
				{Key: bypassAnnotation, Value: rule},
				{Key: snapshotAnnotation, Value: snapshot},
			},
		},
	}
}
