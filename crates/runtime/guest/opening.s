# Stands before all counters of a file: they begin on a page of their own.
	.section headcount_counters,"awG",@nobits,GROUP,comdat
	.balign 4096
	.text
