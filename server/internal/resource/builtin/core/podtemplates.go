package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
)

func podTemplateRules() define.Rules[*corev1.PodTemplate] {
	return define.Rules[*corev1.PodTemplate]{
		Default: func(t *corev1.PodTemplate) { podspec.DefaultTemplate(&t.Template) },
		Validate: func(t *corev1.PodTemplate) field.ErrorList {
			return podspec.ValidateTemplate(field.NewPath("template"), &t.Template)
		},
		Warnings: func(t, old *corev1.PodTemplate) []string {
			if old != nil && old.Generation == t.Generation {
				return nil
			}
			return podspec.TemplateWarnings(field.NewPath("template"), &t.Template)
		},
	}
}
