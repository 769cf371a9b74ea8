// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// Explanation says what Dispatch would do with a review, without calling.
type Explanation struct {
	Cluster  string             `json:"cluster"`
	Phase    string             `json:"phase"`
	Bypass   string             `json:"bypass,omitempty"` // the rule that lets the review pass unasked
	FailOpen string             `json:"failOpen,omitempty"`
	Webhooks []WebhookExplained `json:"webhooks"`
}

// WebhookExplained is one webhook's part of an Explanation.
type WebhookExplained struct {
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	Called        bool   `json:"called"`
	Order         int    `json:"order,omitempty"`   // 1 is called first; equal numbers at the same time
	Reason        string `json:"reason,omitempty"`  // why not called
	Detail        string `json:"detail,omitempty"`  // the condition or error behind the reason
	Rule          string `json:"rule,omitempty"`    // the rule that matched, in words
	Payload       string `json:"payload,omitempty"` // the form in which it gets the review
	FailurePolicy string `json:"failurePolicy"`
	Mode          string `json:"mode"`
	Timeout       string `json:"timeout"`
	URL           string `json:"url"`
}

// Explain decides as Dispatch does, with the same match code, and calls nobody.
// A later mutation by an earlier webhook is not foreseen.
func Explain(r *codec.Review, c *registry.Cluster, p registry.Phase) Explanation { panic("stub") }
