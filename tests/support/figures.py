# SPDX-License-Identifier: Apache-2.0
"""Figures of a measurement for `./dev reliability`, which says where it wants them by VARTML_FIGURES."""
import json
import os


def keep(name, figures):
    """Leaves them as FOLDER/NAME.json; without that folder does nothing."""
    if folder := os.environ.get('VARTML_FIGURES'):
        with open(os.path.join(folder, name + '.json'), 'w', encoding='utf-8') as f:
            json.dump(figures, f)
